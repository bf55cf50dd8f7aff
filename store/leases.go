package store

import (
	"context"
	"time"
)

const (
	// leaseReuse is for how long a lease is handed to further keys; they may live longer than asked by as much.
	leaseReuse = time.Minute
	// leaseReuseShare caps that at a share of the time to live, in percent.
	leaseReuseShare = 5
	// leaseKeys bounds the keys on one lease: when it ends they all go in one transaction.
	leaseKeys = 1000
)

// leases shares engine leases between keys of about the same time to live.
type leases struct {
	turn chan struct{}          // whoever has put its token in may look
	byID map[int64]*sharedLease // by time to live, in seconds
}

type sharedLease struct {
	id    int64
	until time.Time
	keys  int
}

// Lease returns a lease that lives at least ttl seconds from now. Concurrent callers wait for one another.
func (s *Store) Lease(ctx context.Context, ttl int64) (int64, error) {
	l := &s.leases
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	now := s.cfg.Clock.Now()
	if have := l.byID[ttl]; have != nil && now.Before(have.until) && have.keys < leaseKeys {
		have.keys++
		return have.id, nil
	}
	reuse := min(leaseReuse, time.Duration(ttl)*time.Second*leaseReuseShare/100)
	extra := int64((reuse + time.Second - 1) / time.Second)
	id, err := s.host.Grant(ctx, ttl+extra)
	if err != nil {
		return 0, err
	}
	if l.byID == nil {
		l.byID = map[int64]*sharedLease{}
	}
	l.byID[ttl] = &sharedLease{id: id, until: now.Add(reuse), keys: 1}
	return id, nil
}

// forget drops the leases at hand: whether they were granted is not known once the engine was lost.
func (l *leases) forget(ctx context.Context) {
	select {
	case l.turn <- struct{}{}:
		l.byID = nil
		<-l.turn
	case <-ctx.Done():
	}
}
