package operatortest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nodeactor/nodeactor/cluster/lease"
)

// node is one of a fleet, in one of its boots.
type node struct {
	name string
	// worker is who lets it think.
	worker int
	boot   int
	id     lease.SessionID
	lease  *lease.Node
	// up is set while there is a process, cut while nobody reaches it, frozen while it stands still.
	up, cut, frozen bool
	// read is how much of the log it knows.
	read  int
	ticks time.Duration
	held  map[string]*tended
	// changed are manifests it holds that have changed, inbox the answers to what it asked.
	changed []string
	inbox   []lease.Event
	// outbox is what it asked for and not yet done.
	outbox []lease.Action
	// begun are passes that began, ready those that come to their end.
	begun []lease.Fence
	ready []*tended
}

// tended is a manifest that a node holds.
type tended struct {
	key   string
	fence lease.Fence
	// due is when the next pass may begin; never is for when a change says so.
	due time.Duration
	// running is set while a pass runs, until ends; stop when it was called off.
	running bool
	ends    time.Duration
	stop    bool
}

const never = time.Duration(1<<63 - 1)

// start boots a node.
func (f *fleet[S]) start(n *node) {
	if n.up {
		return
	}
	n.boot++
	n.id = lease.SessionID{Node: n.name, Boot: fmt.Sprint(n.boot)}
	n.lease = lease.NewWith(n.id, f.shared[n.worker])
	n.up, n.cut, n.frozen, n.held, n.ticks = true, false, false, map[string]*tended{}, f.clock.now
	n.changed, n.inbox, n.outbox, n.ready = nil, nil, nil, nil
	n.read = len(f.log)
	f.byID[n.id] = n
	for _, key := range f.names {
		if f.live[key] {
			n.inbox = append(n.inbox, lease.Manifest{Name: key})
		}
		if at := f.truth[key]; at.holder != (lease.SessionID{}) || at.started > 0 {
			n.inbox = append(n.inbox, lease.Observed{Manifest: key, Stored: f.recordOf(key)})
		}
	}
	n.inbox = append(n.inbox, f.sessions)
}

// think lets every node take what it was told, and decide. Nodes are independent in this, so their number of workers changes nothing.
func (f *fleet[S]) think() {
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := w; i < len(f.nodes); i += workers {
				f.thinks(f.nodes[i])
			}
		})
	}
	all.Wait()
}

func (f *fleet[S]) thinks(n *node) {
	if !n.up || n.frozen {
		return
	}
	now := f.clock.now
	for _, e := range n.inbox {
		n.take(now, e)
	}
	n.inbox = n.inbox[:0]
	if !n.cut {
		for ; n.read < len(f.log); n.read++ {
			n.take(now, f.log[n.read])
		}
	}
	for _, key := range n.changed {
		if at := n.held[key]; at != nil {
			at.due = min(at.due, now)
		}
	}
	n.changed = n.changed[:0]
	if now >= n.ticks {
		n.ticks += lease.TickEvery
		n.take(now, lease.Tick{})
	}
	n.begin(now, f.size.Seed)
}

// take feeds the node's leases with an event, and does what concerns only itself.
func (n *node) take(now time.Duration, e lease.Event) {
	for _, a := range n.lease.Step(now, e) {
		switch a := a.(type) {
		case lease.Gained:
			n.held[a.Fence.Manifest] = &tended{key: a.Fence.Manifest, fence: a.Fence, due: now}
		case lease.Lost:
			n.lost(a.Fence)
		case lease.Cancel:
			if at := n.held[a.Fence.Manifest]; at != nil {
				at.stop, at.ends = true, now
			}
		default:
			n.outbox = append(n.outbox, a)
		}
	}
}

// lost forgets a lease; what still runs under it comes to its end.
func (n *node) lost(fence lease.Fence) {
	if at := n.held[fence.Manifest]; at != nil && at.fence == fence && !at.running {
		delete(n.held, fence.Manifest)
	}
}

// begin starts the passes that are due, and finds those that come to their end.
func (n *node) begin(now time.Duration, seed uint64) {
	for _, at := range n.held {
		switch {
		case at.running && now >= at.ends:
			n.ready = append(n.ready, at)
		case !at.running && now >= at.due:
			if fence, ok := n.lease.Start(now, at.key); ok {
				took := time.Duration(lease.Score(at.key, fmt.Sprint(seed, now))) & (1<<40 - 1) % longestPass
				at.fence, at.due, at.running, at.stop, at.ends = fence, never, true, false, now+took
				n.begun = append(n.begun, fence)
			}
		}
	}
	slices.SortFunc(n.ready, func(a, b *tended) int { return strings.Compare(a.key, b.key) })
}

// crash ends a process without a word.
func (f *fleet[S]) crash(n *node) {
	n.up = false
	f.report.Crashed++
}

// declare lets membership say whether a session is dead.
func (f *fleet[S]) declare(id lease.SessionID, dead bool) {
	f.log = append(f.log, lease.Verdict{ID: id, Dead: dead})
}

// holding are the manifests a node holds, in order.
func (n *node) holding() []string { return slices.Sorted(maps.Keys(n.held)) }
