#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int listener = -1, input = -1, is_tty, close_once;
static int clients[MAX_CLIENTS], owners[MAX_CLIENTS], nclients;
// Input the container has not taken yet. While there is any, no client is read.
static char pending[65536];
static size_t pending_len, pending_done;
static int close_after_pending;

void attach_init(int listen_fd, int stdin_fd, int tty, int once) {
	listener = listen_fd;
	input = stdin_fd;
	is_tty = tty;
	close_once = once;
	if (input >= 0) {
		fcntl(input, F_SETFL, fcntl(input, F_GETFL) | O_NONBLOCK);
	}
}

static void close_input(void) {
	if (pending_len > pending_done) {
		close_after_pending = 1;
		return;
	}
	if (input >= 0 && !is_tty) {
		close(input);
		input = -1;
	}
}

static void drop(int i) {
	int owned = owners[i];
	close(clients[i]);
	nclients--;
	clients[i] = clients[nclients];
	owners[i] = owners[nclients];
	if (owned && close_once) {
		close_input();
	}
}

static void push_input(void) {
	while (pending_done < pending_len) {
		ssize_t n = input < 0 ? -1 : write(input, pending + pending_done, pending_len - pending_done);
		if (n < 0 && input >= 0 && errno == EINTR) {
			continue;
		}
		if (n < 0 && input >= 0 && errno == EAGAIN) {
			return;
		}
		if (n < 0) { // nobody reads any more
			break;
		}
		pending_done += (size_t)n;
	}
	pending_len = pending_done = 0;
	if (close_after_pending) {
		close_after_pending = 0;
		close_input();
	}
}

static void resize(const unsigned char *p, ssize_t n) {
	if (n < 5 || input < 0 || !is_tty) {
		return;
	}
	struct winsize ws = {.ws_col = (unsigned short)(p[1] | p[2] << 8), .ws_row = (unsigned short)(p[3] | p[4] << 8)};
	ioctl(input, TIOCSWINSZ, &ws);
}

// Returns 0 when the client has gone.
static int receive(int i) {
	static char pkt[sizeof pending];
	ssize_t n = recv(clients[i], pkt, sizeof pkt, MSG_DONTWAIT);
	if (n < 0) {
		return errno == EAGAIN || errno == EINTR;
	}
	if (n == 0) {
		return 0;
	}
	switch (pkt[0]) {
	case PKT_STDIN:
		memcpy(pending, pkt + 1, (size_t)n - 1);
		pending_len = (size_t)n - 1;
		pending_done = 0;
		push_input();
		break;
	case PKT_CLOSE_STDIN:
		close_input();
		break;
	case PKT_RESIZE:
		resize((unsigned char *)pkt, n);
		break;
	case PKT_REOPEN:
		log_reopen();
		return send(clients[i], pkt, 1, MSG_NOSIGNAL) == 1;
	case PKT_OWN_STDIN:
		owners[i] = 1;
		break;
	}
	return 1;
}

int attach_poll(struct pollfd *set, int n) {
	int busy = pending_len > pending_done;
	set[n++] = (struct pollfd){.fd = nclients < MAX_CLIENTS ? listener : -1, .events = POLLIN};
	set[n++] = (struct pollfd){.fd = busy ? input : -1, .events = POLLOUT};
	for (int i = 0; i < nclients; i++) {
		set[n++] = (struct pollfd){.fd = busy ? -1 : clients[i], .events = POLLIN};
	}
	return n;
}

// set and n are what attach_poll filled; clients are visited from the last, because drop moves the last one down.
void attach_handle(struct pollfd *set, int n) {
	if (set[1].revents) {
		push_input();
	}
	for (int i = n - 3; i >= 0; i--) {
		if (set[2 + i].revents && pending_len == pending_done && !receive(i)) {
			drop(i);
		}
	}
	if (set[0].revents & POLLIN) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0) {
			owners[nclients] = 0;
			clients[nclients++] = fd;
		}
	}
}

static int deliver(int fd, const char *pkt, size_t len) {
	if (send(fd, pkt, len, MSG_NOSIGNAL) == (ssize_t)len) {
		return 1;
	}
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	return errno == EAGAIN && poll(&p, 1, CLIENT_STALL_MS) == 1 && send(fd, pkt, len, MSG_NOSIGNAL) == (ssize_t)len;
}

void attach_output(char kind, const char *data, size_t len) {
	static char pkt[LINE_MAX_BYTES + 1];
	if (nclients == 0) {
		return;
	}
	pkt[0] = kind;
	memcpy(pkt + 1, data, len);
	for (int i = nclients - 1; i >= 0; i--) {
		if (!deliver(clients[i], pkt, len + 1)) {
			drop(i);
		}
	}
}
