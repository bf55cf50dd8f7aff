package gossip

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

// Peers are the gossip addresses a host has ever heard of.
type Peers interface {
	// Known lists them.
	Known() ([]string, error)
	// Remember adds some; those that are known already cost nothing.
	Remember(addrs []string) error
}

// Rejoin makes the actor that dials every known peer which is not a member. memberlist never
// does: two halves of a cluster that lost each other for longer than its patience stay apart
// for ever.
func Rejoin(name string, view *View, peers Peers) supervision.Handler {
	return &rejoin{name: name, view: view, peers: peers}
}

type rejoin struct {
	name  string
	view  *View
	peers Peers
	// next is where the next round goes on in the list of absent peers.
	next int
}

type round struct{}

// Receive implements supervision.Handler.
func (r *rejoin) Receive(ctx supervision.Context, msg any) error {
	switch m := msg.(type) {
	case supervision.Started, round:
		ctx.Go(supervision.Job{Name: "join", Deadline: joinTimeout, Run: r.join})
	case supervision.JobDone:
		if m.Err != nil {
			ctx.Log().Debug("peers not reached", "err", m.Err)
		}
		ctx.After(rejoinEvery+r.phase(), round{})
	}
	return nil
}

// phase lets each member dial at a moment of its own.
func (r *rejoin) phase() time.Duration {
	h := fnv.New32a()
	h.Write([]byte(r.name))
	return time.Duration(h.Sum32()%1000) * time.Millisecond
}

// join remembers who is here and dials who is not.
func (r *rejoin) join(ctx context.Context, _ func()) (any, error) {
	list := r.view.list.Load()
	if list == nil {
		return nil, nil
	}
	known, err := r.peers.Known()
	if err != nil {
		return nil, fmt.Errorf("cannot read the known peers: %w", err)
	}
	var here, away []string
	for _, n := range r.view.Alive() {
		here = append(here, n.Addr)
	}
	for _, addr := range known {
		if !slices.Contains(here, addr) {
			away = append(away, addr)
		}
	}
	if err := r.peers.Remember(here); err != nil {
		return nil, fmt.Errorf("cannot remember the peers: %w", err)
	}
	if len(away) == 0 || ctx.Err() != nil {
		return nil, ctx.Err()
	}
	_, err = list.Join(r.some(away))
	return nil, err
}

// some picks as many absent peers as can be dialled within one round, others in the next.
func (r *rejoin) some(away []string) []string {
	var picked []string
	for range min(len(away), dialsPerRound) {
		picked = append(picked, away[r.next%len(away)])
		r.next++
	}
	return picked
}
