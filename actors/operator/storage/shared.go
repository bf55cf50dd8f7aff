package storage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/nodeactor/nodeactor/cluster/lease"
	"github.com/nodeactor/nodeactor/supervision"
)

// SharedStore is a Store that several processes of one host have open at a time. Which of them has the file is nobody's concern: each becomes
// the host when there is none.
type SharedStore struct {
	dir   *directory
	o     options
	group *supervision.Group
	once  sync.Once

	mu sync.Mutex
	// now is the present role, nil while there is none; failed is why there is none, if it is more than a moment.
	now    role
	failed error
	// turned is closed and made anew when now or failed changes.
	turned  chan struct{}
	closed  bool
	own     []lease.SessionID
	feeds   []*sharedFeed
	members []*sharedSessions
}

// OpenShared opens the store in a directory of this host, and makes it if there is none. Any number of processes may do so. An error is
// returned when this process is the first and the file cannot be opened, as when it is damaged. Methods wait, as long as their contexts
// let them, while no process has the file.
func OpenShared(path string, opts ...Option) (*SharedStore, error) {
	dir, err := openDirectory(path)
	if err != nil {
		return nil, err
	}
	s := &SharedStore{dir: dir, o: chosen(opts), turned: make(chan struct{})}
	s.group = supervision.NewGroup(context.Background(), "shared store", nil)
	if err := s.begin(); err != nil {
		s.group.Cancel()
		return nil, errors.Join(err, dir.close())
	}
	s.group.Go("roles", s.run)
	return s, nil
}

// errNobody is returned when no process has the store open yet, or any more.
var errNobody = errors.New("no process has the store open")

// begin makes this process the host if there is none; if there is one, that is found out about later.
func (s *SharedStore) begin() error {
	first, err := s.dir.tryLock()
	if err != nil || !first {
		return err
	}
	h, err := s.host(s.group.Context())
	if err == nil {
		s.adopt(h)
	}
	return err
}

// host opens the file; the lock is this process's.
func (s *SharedStore) host(ctx context.Context) (role, error) {
	h, err := newHost(ctx, s.dir, s.o)
	if err != nil {
		s.dir.unlock()
		return nil, err
	}
	return h, nil
}

// elect makes this process the host if there is none, and else a guest.
func (s *SharedStore) elect(ctx context.Context) (role, error) {
	first, err := s.dir.tryLock()
	if err != nil {
		return nil, err
	}
	if first {
		return s.host(ctx)
	}
	g, err := newGuest(ctx, s.dir, s.o.log, s.sessionsOwn())
	switch {
	case errors.Is(err, ErrVersion):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errNobody, err)
	}
	return g, nil
}

// run changes roles until the store is closed.
func (s *SharedStore) run(ctx context.Context) error {
	for try := 0; ; {
		if r := s.role(); r != nil {
			try = 0
			select {
			case <-r.gone():
			case <-ctx.Done():
			}
			s.resign(r)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		next, err := s.elect(ctx)
		if err == nil {
			s.adopt(next)
			continue
		}
		wait := s.pause(try)
		if try++; !errors.Is(err, errNobody) {
			s.fail(err)
			wait = retryFault
		}
		if err := s.o.clock.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// pause spreads the processes that look for a host.
func (s *SharedStore) pause(try int) time.Duration {
	const prime = 7919
	return retryLeast + time.Duration(os.Getpid()*prime+try*prime*prime)*time.Microsecond%retrySpread
}

func (s *SharedStore) role() role {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// adopt begins a role: what is watched is watched there.
func (s *SharedStore) adopt(r role) {
	s.mu.Lock()
	s.now, s.failed = r, nil
	feeds, members := slices.Clone(s.feeds), slices.Clone(s.members)
	s.turn()
	s.mu.Unlock()
	for _, f := range feeds {
		f.move(r)
	}
	for _, m := range members {
		m.move(r)
	}
}

// resign ends a role; its feeds stay, and tell nothing until the next role.
func (s *SharedStore) resign(r role) {
	s.mu.Lock()
	s.now = nil
	s.turn()
	s.mu.Unlock()
	if err := r.close(); err != nil {
		s.o.log.Warn("cannot close the store cleanly", "reason", err)
	}
	if _, was := r.(*host); was {
		s.dir.unlock()
	}
}

func (s *SharedStore) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.o.log.Error("cannot open the store, trying again", "reason", err)
	}
	s.failed = err
	s.turn()
}

// turn lets those look again who wait for a role.
func (s *SharedStore) turn() {
	close(s.turned)
	s.turned = make(chan struct{})
}

// wait gives the present role once there is one.
func (s *SharedStore) wait(ctx context.Context) (role, error) {
	for {
		s.mu.Lock()
		now, failed, turned, closed := s.now, s.failed, s.turned, s.closed
		s.mu.Unlock()
		switch {
		case closed:
			return nil, ErrClosed
		case now != nil:
			return now, nil
		case failed != nil:
			return nil, failed
		}
		select {
		case <-turned:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Hosting tells whether this process has the file open.
func (s *SharedStore) Hosting() bool {
	_, is := s.role().(*host)
	return is
}

func (s *SharedStore) sessionsOwn() []lease.SessionID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.own)
}

// Close implements Store. When this process has the file, another one opens it.
func (s *SharedStore) Close() error {
	err := error(nil)
	s.once.Do(func() {
		s.mu.Lock()
		s.closed = true
		s.turn()
		s.mu.Unlock()
		s.group.Cancel()
		err = errors.Join(s.group.Wait(), s.dir.close())
	})
	return err
}
