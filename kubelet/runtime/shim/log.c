#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *log_path;
static int log_fd = -1;
static char out[65536];
static size_t out_len;

void log_open(const char *path, int fd) {
	log_path = path;
	log_fd = fd;
}

// A rotation renamed the file: what follows goes to a new one. If it cannot be opened, the old one stays in use.
void log_reopen(void) {
	log_flush();
	int fd = open(log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
	if (fd >= 0) {
		close(log_fd);
		log_fd = fd;
	}
}

// A full disk loses log lines, never the container.
void log_flush(void) {
	size_t done = 0;
	while (done < out_len) {
		ssize_t n = write(log_fd, out + done, out_len - done);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n <= 0) {
			break;
		}
		done += (size_t)n;
	}
	out_len = 0;
}

static size_t stamp(char *to, size_t size) {
	static time_t last;
	static char day[32];
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	if (ts.tv_sec != last || day[0] == 0) {
		struct tm tm;
		last = ts.tv_sec;
		gmtime_r(&ts.tv_sec, &tm);
		strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
	}
	return (size_t)snprintf(to, size, "%s.%09ldZ", day, ts.tv_nsec);
}

static void emit(struct stream *s, char tag, const char *data, size_t len) {
	if (log_fd < 0) {
		return;
	}
	if (out_len + len + 64 > sizeof out) {
		log_flush();
	}
	out_len += stamp(out + out_len, 40);
	out_len += (size_t)sprintf(out + out_len, " %s %c ", s->name, tag);
	memcpy(out + out_len, data, len);
	out_len += len;
	out[out_len++] = '\n';
}

static void emit_held(struct stream *s, char tag) {
	emit(s, tag, s->buf, s->len);
	s->len = 0;
}

// Lines that lie whole in data are written from there; only an unfinished one is held back.
void log_feed(struct stream *s, const char *data, size_t len) {
	while (len > 0) {
		const char *nl = memchr(data, '\n', len);
		size_t take = nl ? (size_t)(nl - data) : len;
		size_t room = LINE_MAX_BYTES - s->len;
		int cut = take > room;
		if (cut) {
			take = room;
		}
		if (nl && !cut && s->len == 0) {
			emit(s, 'F', data, take);
		} else {
			memcpy(s->buf + s->len, data, take);
			s->len += take;
			if (cut) {
				emit_held(s, 'P');
			} else if (nl) {
				emit_held(s, 'F');
			}
		}
		data += take;
		len -= take;
		if (nl && !cut) {
			data++;
			len--;
		}
	}
}

void log_end(struct stream *s) {
	if (s->len > 0) {
		emit_held(s, 'F');
	}
}
