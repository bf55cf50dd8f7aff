#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

// The container this process keeps. Arguments, in order:
//   id pid exit-file log-path log-fd out-fd err-fd stdin-fd listen-fd oom-file cgroup-dir flags
// Descriptors are -1 when absent. flags: t = out-fd is a terminal, o = close the input after its first owner,
// k = kill the rest of the cgroup when the main process ends.
static struct {
	pid_t pid;
	const char *exit_file, *oom_file, *cgroup;
	int kill_rest;
	int64_t gone_at; // when the main process ended, 0 before
} self;

static struct stream streams[2] = {{.fd = -1, .name = "stdout"}, {.fd = -1, .name = "stderr"}};

// The exit file is written before the process is reaped: while the file is missing, the pid cannot have been reused.
static void reap(void) {
	for (;;) {
		siginfo_t info = {0};
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0) {
			return;
		}
		if (info.si_pid == self.pid) {
			int status = info.si_code == CLD_EXITED ? (info.si_status & 0xff) << 8 : (info.si_status & 0x7f);
			exit_write(self.exit_file, self.pid, status, self.oom_file);
			self.gone_at = now_ms();
		}
		waitpid(info.si_pid, NULL, 0);
		if (info.si_pid == self.pid && self.kill_rest) {
			cgroup_kill_all(self.cgroup);
		}
	}
}

static void read_stream(struct stream *s, char kind) {
	static char data[LINE_MAX_BYTES];
	ssize_t n = read(s->fd, data, sizeof data);
	if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
		return;
	}
	if (n <= 0) { // end of file, or EIO from a terminal nobody has open
		close(s->fd);
		s->fd = -1;
		log_end(s);
	} else {
		log_feed(s, data, (size_t)n);
		attach_output(kind, data, (size_t)n);
	}
	log_flush();
}

static int open_streams(void) { return (streams[0].fd >= 0) + (streams[1].fd >= 0); }

// Whether there is nothing more to wait for.
static int finished(void) {
	return self.gone_at && (open_streams() == 0 || now_ms() - self.gone_at >= LINGER_MS);
}

static int wait_ms(void) {
	if (!self.gone_at) {
		return -1;
	}
	int64_t left = self.gone_at + LINGER_MS - now_ms();
	return left > 0 ? (int)left : 0;
}

static void loop(int sigfd) {
	struct pollfd set[5 + MAX_CLIENTS];
	while (!finished()) {
		set[0] = (struct pollfd){.fd = sigfd, .events = POLLIN};
		set[1] = (struct pollfd){.fd = streams[0].fd, .events = POLLIN};
		set[2] = (struct pollfd){.fd = streams[1].fd, .events = POLLIN};
		int n = attach_poll(set, 3);
		if (poll(set, (nfds_t)n, wait_ms()) < 0) {
			continue;
		}
		attach_handle(set + 3, n - 3); // first: output may drop clients, and with them their places in the set
		if (set[1].revents) {
			read_stream(&streams[0], PKT_STDOUT);
		}
		if (set[2].revents) {
			read_stream(&streams[1], PKT_STDERR);
		}
		if (set[0].revents) {
			struct signalfd_siginfo info;
			if (read(sigfd, &info, sizeof info) > 0) {
				reap();
			}
		}
	}
}

static void drain(void) {
	for (int i = 0; i < 2; i++) {
		if (streams[i].fd >= 0) {
			log_end(&streams[i]);
		}
	}
	log_flush();
}

// Nothing but SIGKILL ends a shim before its container; a SIGTERM to the daemon's group must not.
static int block_signals(void) {
	sigset_t all, chld;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	return signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void quiet_stdio(void) {
	int null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3; fd++) {
		dup2(null, fd);
	}
	if (null > 2) {
		close(null);
	}
}

int shim_main(int argc, char **argv) {
	if (argc != 13) {
		return 2;
	}
	quiet_stdio();
	int sigfd = block_signals();
	self.pid = atoi(argv[2]);
	self.exit_file = argv[3];
	self.oom_file = argv[10];
	self.cgroup = argv[11];
	self.kill_rest = strchr(argv[12], 'k') != NULL;
	log_open(argv[4], atoi(argv[5]));
	streams[0].fd = atoi(argv[6]);
	streams[1].fd = atoi(argv[7]);
	int tty = strchr(argv[12], 't') != NULL;
	attach_init(atoi(argv[9]), tty ? dup(streams[0].fd) : atoi(argv[8]), tty, strchr(argv[12], 'o') != NULL);
	reap(); // it may have ended before the signals were blocked
	loop(sigfd);
	drain();
	return 0;
}
