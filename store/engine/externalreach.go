package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/connectivity"

	"github.com/nodeactor/nodeactor/store/internal/guard"
	"github.com/nodeactor/nodeactor/supervision"
)

// reach knows whether there is a connection to any endpoint.
type reach struct {
	cfg   ExternalConfig
	clock supervision.Clock
	away  spell

	mu sync.Mutex
	// up is closed while there is a connection; since is when the last one was lost.
	up    chan struct{}
	ready bool
	since time.Time
}

func newReach(cfg ExternalConfig, client *clientv3.Client, group *guard.Group) *reach {
	r := &reach{cfg: cfg, clock: cfg.Clock, up: make(chan struct{}), since: cfg.Clock.Now()}
	group.Go("connection", func(ctx context.Context) error { r.follow(ctx, client); return nil }, nil)
	return r
}

// follow looks at the state of the connections until ctx ends.
func (r *reach) follow(ctx context.Context, client *clientv3.Client) {
	conn := client.ActiveConnection()
	for {
		state := conn.GetState()
		if state == connectivity.Idle {
			conn.Connect()
		}
		r.set(state == connectivity.Ready)
		if !conn.WaitForStateChange(ctx, state) {
			return
		}
	}
}

func (r *reach) set(ready bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case ready && !r.ready:
		close(r.up)
		r.away.end(r.cfg.Log, "the store answers again")
	case !ready && r.ready:
		r.up, r.since = make(chan struct{}), r.clock.Now()
	}
	r.ready = ready
}

func (r *reach) look() (up <-chan struct{}, ready bool, since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.up, r.ready, r.since
}

// connected returns once there is a connection, or soon with ErrAway.
func (r *reach) connected(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectFor)
	defer cancel()
	up, _, _ := r.look()
	select {
	case <-up:
		return nil
	case <-ctx.Done():
		return ErrAway
	}
}

// wait returns once there is a connection. It fails with ErrAway when there has been none for a while.
func (r *reach) wait(ctx context.Context) error {
	up, ready, since := r.look()
	if ready {
		return nil
	}
	left := graceFor - r.clock.Now().Sub(since)
	if left <= 0 {
		r.away.begin(r.cfg.Log, "no endpoint of the store answers: reads go on from memory, writes and consistent reads are refused", "endpoints", r.cfg.Endpoints)
		return fmt.Errorf("%w (%s without one)", ErrAway, (graceFor - left).Round(time.Second))
	}
	over := make(chan struct{})
	stop := r.clock.AfterFunc(left, func() { close(over) })
	defer stop()
	select {
	case <-up:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-over:
		return r.wait(ctx)
	}
}
