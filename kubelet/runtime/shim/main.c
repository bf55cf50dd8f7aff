#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// Runs before the Go runtime and before libcontainer's own constructor, and does not return for our names.
__attribute__((constructor(101))) static void dispatch(int argc, char **argv) {
	if (argc < 1 || argv == NULL || argv[0] == NULL) {
		return;
	}
	if (strcmp(argv[0], "nodeactor-shim") == 0) {
		_exit(shim_main(argc, argv));
	}
	if (strcmp(argv[0], "nodeactor-wait") == 0) {
		_exit(wait_main(argc, argv));
	}
	if (strcmp(argv[0], "/nodeactor-pause") == 0) {
		_exit(pause_main());
	}
}

// wait_main: argv[1] is a child's pid, argv[2] a descriptor; one JSON line with the child's wait status goes there.
int wait_main(int argc, char **argv) {
	if (argc != 3) {
		return 2;
	}
	pid_t child = atoi(argv[1]);
	int out = atoi(argv[2]);
	for (int fd = 0; fd < 3; fd++) {
		close(fd);
	}
	signal(SIGPIPE, SIG_IGN);
	siginfo_t info;
	while (waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) < 0) {
		if (errno != EINTR) {
			return 3;
		}
	}
	// Reported before it is reaped: until then its pid is its own.
	int status = info.si_code == CLD_EXITED ? (info.si_status & 0xff) << 8 : (info.si_status & 0x7f);
	dprintf(out, "{\"exited\":true,\"status\":%d}\n", status);
	waitpid(child, NULL, 0);
	return 0;
}

static void pause_stop(int sig) {
	(void)sig;
	_exit(0);
}

// pause_main reaps whatever is orphaned in its process namespace. A pid 1 without handlers would ignore SIGTERM.
int pause_main(void) {
	signal(SIGTERM, pause_stop);
	signal(SIGINT, pause_stop);
	sigset_t chld;
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	for (;;) {
		while (waitpid(-1, NULL, WNOHANG) > 0) {
		}
		int sig;
		sigwait(&chld, &sig);
	}
}
