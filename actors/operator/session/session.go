package session

import (
	"fmt"
	"slices"
	"sync"

	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/cluster/lease"
)

// Listener is told what becomes of the leases of one kind. Each function may be nil.
type Listener struct {
	// Gained: work may be started.
	Gained func(f lease.Fence)
	// Cancel: work under the fence has to end, and Done has to follow.
	Cancel func(f lease.Fence, why lease.Reason)
	// Lost: this process does not hold the lease any more.
	Lost func(f lease.Fence)
}

// Stats is how a session does.
type Stats struct {
	// ID is the session; its boot changes when the actor is started anew.
	ID lease.SessionID
	// Held is how many leases it holds, Running in how many of them work runs, Manifests how many manifests it knows of.
	Held, Running, Manifests int
	// Live is how many sessions the store names, Dead how many of them were declared dead.
	Live, Dead int
	// Proven tells whether the session may start work.
	Proven bool
	// Gained, Lost and Cancelled count leases and passes, Takeovers the leases that were taken from a holder that was gone.
	Gained, Lost, Cancelled, Takeovers uint64
	// Epoch is the highest epoch of a lease it held.
	Epoch uint64
	// Waiting is how many writes of leases are not answered yet.
	Waiting int
	// Left is set when the session is over.
	Left bool
}

// Session is a process's part in the work on a store. Its actor runs it; its methods are safe for concurrent use.
type Session struct {
	store     storage.Store
	id        lease.SessionID
	listeners map[string]Listener
	left      chan struct{}

	mu sync.Mutex
	// now is the life of the present generation of the actor; nil before the first.
	now *life
	// leaving is set by Leave, over when the session has ended.
	leaving, over bool
	stats         Stats
}

// New makes a session of the node and boot that id names: no two that live at a time may have the same node, and each run of a node needs
// another boot.
func New(store storage.Store, id lease.SessionID) *Session {
	return &Session{store: store, id: id, listeners: map[string]Listener{}, left: make(chan struct{}), stats: Stats{ID: id}}
}

// Listen makes the session hold leases of a kind. It is called before the actor starts.
func (s *Session) Listen(kind string, l Listener) { s.listeners[kind] = l }

// kinds are those it holds leases of.
func (s *Session) kinds() []string {
	kinds := make([]string, 0, len(s.listeners))
	for kind := range s.listeners {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}

// Start tells whether work on a manifest may begin now, and under which fence. It counts as running until Done; none is begun beside it. If
// not, Gained follows once it may.
func (s *Session) Start(manifest string) (lease.Fence, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		return lease.Fence{}, false
	}
	f, ok := s.now.node.Start(s.now.instant(), manifest)
	if !ok {
		s.now.refused[manifest] = struct{}{}
	}
	return f, ok
}

// May tells whether the work that runs under a fence may still have an effect: nil, or an error that wraps storage.ErrFenced.
func (s *Session) May(f lease.Fence) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil || !s.now.node.May(s.now.instant(), f) {
		return fmt.Errorf("cannot act on %s under epoch %d: this process may not tend it any more: %w", f.Manifest, f.Epoch, storage.ErrFenced)
	}
	return nil
}

// Done says that the work under a fence has ended.
func (s *Session) Done(f lease.Fence) { s.tell(lease.Done{Fence: f}) }

// Abandon says that the work under a fence was given up and may never end. The manifest's next work, here or elsewhere, has another epoch.
func (s *Session) Abandon(f lease.Fence) { s.tell(lease.Abandoned{Fence: f}) }

// Fenced says that a write under a fence was refused.
func (s *Session) Fenced(f lease.Fence) { s.tell(lease.Fenced{Fence: f}) }

// Leave begins the graceful stop: nothing is started any more, running work is called off, each lease is given back when its work has
// ended, and then the session is ended. It returns at once; Left follows.
func (s *Session) Leave() {
	s.mu.Lock()
	s.leaving = true
	s.mu.Unlock()
	s.tell(lease.Stop{})
}

// Left is closed when the session is over.
func (s *Session) Left() <-chan struct{} { return s.left }

// Stats tells how the session does.
func (s *Session) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Left = s.over
	if s.now != nil {
		s.now.measure(&st)
	}
	return st
}

// tell feeds the present life.
func (s *Session) tell(e lease.Event) {
	s.mu.Lock()
	l := s.now
	s.mu.Unlock()
	if l != nil {
		l.feed(e)
	}
}

// present makes a life the present one; it tells whether the session is to leave.
func (s *Session) present(l *life) (leaving bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now, s.stats.ID = l, l.id
	return s.leaving
}

// count counts what the listeners are told.
func (s *Session) count(a lease.Action) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch a := a.(type) {
	case lease.Gained:
		s.stats.Gained++
		s.stats.Epoch = max(s.stats.Epoch, a.Fence.Epoch)
	case lease.Lost:
		s.stats.Lost++
	case lease.Cancel:
		s.stats.Cancelled++
	}
}

// ended notes that the session is over.
func (s *Session) ended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.over = true
		close(s.left)
	}
}
