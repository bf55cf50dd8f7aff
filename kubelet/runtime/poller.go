package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// poller waits for the end of processes, by pidfd: one epoll for all of them.
type poller struct {
	epoll, wake int

	mu      sync.Mutex
	closed  bool
	orphans map[int]bool // helpers that outlived their deadline, to be reaped
}

func newPoller() (*poller, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot create the poller: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(err, unix.Close(epoll))
	}
	p := &poller{epoll: epoll, wake: wake, orphans: map[int]bool{}}
	p.watch(wake)
	return p, nil
}

func (p *poller) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	for fd := range p.orphans {
		unix.Close(fd)
	}
	unix.Close(p.wake)
	unix.Close(p.epoll)
}

// watch adds fd. Each end is reported once: a pidfd stays readable for good.
func (p *poller) watch(fd int) {
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: int32(fd)}
	if fd == p.wake {
		event.Events = unix.EPOLLIN
	}
	_ = unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &event)
}

// forget removes and closes fd.
func (p *poller) forget(fd int) {
	if fd >= 0 {
		_ = unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, fd, nil)
		unix.Close(fd)
	}
}

// orphan takes over the pidfd of a child that is to be reaped whenever it ends.
func (p *poller) orphan(fd int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		unix.Close(fd)
		return
	}
	p.orphans[fd] = true
	p.watch(fd)
}

// reapOrphan says whether fd was one.
func (p *poller) reapOrphan(fd int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.orphans[fd] {
		return false
	}
	delete(p.orphans, fd)
	reap(fd)
	p.forget(fd)
	return true
}

func (p *poller) wakeUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		_, _ = unix.Write(p.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

// quieten takes back a wake-up: left there, it would wake every later Poll for ever.
func (p *poller) quieten() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		_, _ = unix.Read(p.wake, make([]byte, 8))
	}
}

// Poll delivers exits until ctx ends; it returns the context's error then. beat is called at least every 5 s and may be
// nil. Run it in one guarded goroutine for as long as the Engine is open.
func (e *Engine) Poll(ctx context.Context, beat func()) error {
	stop := context.AfterFunc(ctx, e.poll.wakeUp)
	defer stop()
	ready := make([]unix.EpollEvent, 64)
	for ctx.Err() == nil {
		n, err := unix.EpollWait(e.poll.epoll, ready, int(pollBeat/time.Millisecond))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("cannot poll: %w", err)
		}
		if beat != nil {
			beat()
		}
		for _, event := range ready[:max(n, 0)] {
			e.pollReady(int(event.Fd))
		}
	}
	return ctx.Err()
}

func (e *Engine) pollReady(fd int) {
	if fd == e.poll.wake {
		e.poll.quieten()
		return
	}
	if e.poll.reapOrphan(fd) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.containers {
		if c.watched == fd {
			e.observe(c)
			return
		}
	}
}

// awaitReadable waits for fd at most d; it says whether fd is readable.
func awaitReadable(fd int, d time.Duration) bool {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(d/time.Millisecond))
		if !errors.Is(err, unix.EINTR) {
			return n > 0
		}
	}
}

// reap collects an ended child; for a process that is not ours there is nothing to collect.
func reap(pidfd int) { _ = unix.Waitid(unix.P_PIDFD, pidfd, nil, unix.WEXITED|unix.WNOHANG, nil) }
