#define _GNU_SOURCE
#include "shim.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int64_t now_ms(void) {
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

// How many processes of the cgroup were killed for lack of memory; both cgroup versions write a line "oom_kill N".
static long oom_kills(const char *path) {
	char line[128];
	long n = 0;
	FILE *f = fopen(path, "re");
	if (f == NULL) {
		return 0;
	}
	while (fgets(line, sizeof line, f)) {
		if (strncmp(line, "oom_kill ", 9) == 0) {
			n = atol(line + 9);
		}
	}
	fclose(f);
	return n;
}

// The exit file appears whole or not at all.
int exit_write(const char *path, int pid, int status, const char *oom_file) {
	char tmp[4096];
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	if ((size_t)snprintf(tmp, sizeof tmp, "%s.tmp", path) >= sizeof tmp) {
		return -1;
	}
	int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0) {
		return -1;
	}
	int n = dprintf(fd, "{\"pid\":%d,\"status\":%d,\"timeNanos\":%lld,\"oomKills\":%ld}\n", pid, status,
	                (long long)ts.tv_sec * 1000000000LL + ts.tv_nsec, oom_kills(oom_file));
	close(fd);
	return n > 0 ? rename(tmp, path) : -1;
}

static int kill_listed(const char *procs) {
	char line[32];
	int n = 0;
	FILE *f = fopen(procs, "re");
	if (f == NULL) {
		return 0;
	}
	while (fgets(line, sizeof line, f)) {
		kill(atoi(line), SIGKILL);
		n++;
	}
	fclose(f);
	return n;
}

// With a shared process namespace the kernel does not kill the rest of a container with its main process. dir is the
// container's cgroup; a second is enough for all but processes stuck in the kernel, which the daemon's kill reports.
void cgroup_kill_all(const char *dir) {
	char procs[4096];
	if ((size_t)snprintf(procs, sizeof procs, "%s/cgroup.procs", dir) >= sizeof procs) {
		return;
	}
	for (int i = 0; i < 100 && kill_listed(procs) > 0; i++) {
		usleep(10000);
	}
}
