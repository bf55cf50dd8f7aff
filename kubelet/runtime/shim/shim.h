// The C main functions of the helper binary and what they share.
#ifndef NODEACTOR_SHIM_H
#define NODEACTOR_SHIM_H

#include <stddef.h>
#include <stdint.h>

// How long a shim reads on when the container's main process is gone but something still holds its output open.
#define LINGER_MS 200
// The largest log line; longer ones are cut into pieces tagged P, as other CRI runtimes do.
#define LINE_MAX_BYTES 16384
// Attached clients at one time.
#define MAX_CLIENTS 16
// How long one attached client may leave its socket full before it is dropped: the container must not wait for it longer.
#define CLIENT_STALL_MS 1000

int shim_main(int argc, char **argv);
int wait_main(int argc, char **argv);
int pause_main(void);

// log.c: one output stream in the CRI line format.
struct stream {
	int fd;
	const char *name;
	size_t len;
	char buf[LINE_MAX_BYTES];
};
void log_open(const char *path, int fd);
void log_reopen(void);
void log_feed(struct stream *s, const char *data, size_t len);
void log_end(struct stream *s);
void log_flush(void);

// attach.c: clients of the container's streams, over a SOCK_SEQPACKET socket. The first byte of each packet says what it is.
enum {
	PKT_STDIN = 0,       // client: data
	PKT_STDOUT = 1,      // shim: data
	PKT_STDERR = 2,      // shim: data
	PKT_CLOSE_STDIN = 3, // client: end of input
	PKT_RESIZE = 4,      // client: uint16 width, uint16 height, little endian
	PKT_REOPEN = 5,      // client: open the log path anew; the shim answers with the same
	PKT_OWN_STDIN = 6,   // client: when I go, close the input if it is to be closed once
};
struct pollfd;
void attach_init(int listen_fd, int stdin_fd, int tty, int once);
int attach_poll(struct pollfd *set, int n);
void attach_handle(struct pollfd *set, int n);
void attach_output(char kind, const char *data, size_t len);

// exit.c: the exit file and the container's cgroup.
int64_t now_ms(void);
int exit_write(const char *path, int pid, int status, const char *oom_file);
void cgroup_kill_all(const char *dir);

#endif
