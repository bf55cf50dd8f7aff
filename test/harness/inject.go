package harness

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/nodeactor/nodeactor/supervision"
)

// Messages that Inject counts apart.
const (
	// AtStart is the next Started of a child.
	AtStart = 0
	// AtStop is the next Stopping of a child.
	AtStop = -1
)

// ErrInjected is returned when a fault was injected as an error.
var ErrInjected = errors.New("injected error")

// Injection is a fault that was planted.
type Injection struct {
	k        *Kit
	path     string
	n        int
	do       func(ctx supervision.Context, msg any) (taken bool, err error)
	stubborn atomic.Bool
	optional atomic.Bool
	released atomic.Bool
	fired    atomic.Bool
	cond     cond
}

// Stubborn makes an injected hang ignore the end of its context: it lasts until Release.
func (in *Injection) Stubborn() *Injection {
	in.stubborn.Store(true)
	return in
}

// Optional makes it no error that the message never comes.
func (in *Injection) Optional() *Injection {
	in.optional.Store(true)
	return in
}

// Release ends an injected hang. The kit does it at the end of the test.
func (in *Injection) Release() {
	in.released.Store(true)
	in.cond.signal()
}

// Fired tells whether the fault has happened.
func (in *Injection) Fired() bool { return in.fired.Load() }

func (in *Injection) act(ctx supervision.Context, msg any) (bool, error) {
	in.fired.Store(true)
	in.k.Note("injected into %s", in.path)
	return in.do(ctx, msg)
}

// Inject makes the n-th message that the child at path gets from now on end in a fault.
// Started and Stopping are not counted; n may be AtStart or AtStop instead. An injected Hang
// lasts until its context ends, or longer if it is Stubborn. The fault is still to be
// declared with Expect.
func (k *Kit) Inject(path string, n int, kind supervision.FaultKind) *Injection {
	in := &Injection{}
	in.do = func(ctx supervision.Context, _ any) (bool, error) { return true, in.fault(ctx.Context(), kind) }
	return k.inject(in, path, n)
}

// InjectFunc is Inject with code of the caller's, which runs as part of the handler. If it
// returns false without an error the handler gets the message too.
func (k *Kit) InjectFunc(path string, n int, f func(ctx supervision.Context, msg any) (taken bool, err error)) *Injection {
	return k.inject(&Injection{do: f}, path, n)
}

// InjectGoexit makes the n-th message end the goroutine that handles it, as a failing
// assertion inside an actor would.
func (k *Kit) InjectGoexit(path string, n int) *Injection {
	return k.InjectFunc(path, n, func(supervision.Context, any) (bool, error) {
		runtime.Goexit()
		return true, nil
	})
}

func (k *Kit) inject(in *Injection, path string, n int) *Injection {
	in.k, in.path, in.n = k, path, n
	k.injections.plant(in)
	return in
}

// fault carries the fault out.
func (in *Injection) fault(c context.Context, kind supervision.FaultKind) error {
	switch kind {
	case supervision.Panic:
		panic("injected panic")
	case supervision.Hang:
		in.hang(c)
		return nil
	case supervision.BindFailure:
		return &supervision.BindError{Addr: "injected", Err: ErrInjected}
	}
	return ErrInjected
}

// hang blocks until the injection is released, or the context ends.
func (in *Injection) hang(c context.Context) {
	defer in.k.wakeOn(c, &in.cond)()
	in.k.level.wait(&in.cond, func() bool { return in.released.Load() || !in.stubborn.Load() && c.Err() != nil })
}

// injections are what was planted, by path.
type injections struct {
	mu     sync.Mutex
	byPath map[string][]*Injection
	all    []*Injection
}

func (s *injections) plant(in *Injection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byPath == nil {
		s.byPath = map[string][]*Injection{}
	}
	s.byPath[in.path] = append(s.byPath[in.path], in)
	s.all = append(s.all, in)
}

// at counts a message of a child, and returns the injection it is meant for.
func (s *injections) at(path string, msg any) *Injection {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byPath) == 0 {
		return nil
	}
	var hit *Injection
	for _, in := range s.byPath[path] {
		switch {
		case !in.counts(msg):
		case hit == nil:
			hit = in
		case in.n == 0:
			// Two are meant for one message: the other has to wait for the next.
			in.n = 1
		}
	}
	if hit != nil {
		s.remove(hit)
	}
	return hit
}

// counts tells whether a message is the one; others are counted.
func (in *Injection) counts(msg any) bool {
	switch msg.(type) {
	case supervision.Started:
		return in.n == AtStart
	case supervision.Stopping:
		return in.n == AtStop
	}
	if in.n <= 0 {
		return false
	}
	in.n--
	return in.n == 0
}

func (s *injections) remove(in *Injection) {
	left := s.byPath[in.path][:0:0]
	for _, other := range s.byPath[in.path] {
		if other != in {
			left = append(left, other)
		}
	}
	s.byPath[in.path] = left
	if len(left) == 0 {
		delete(s.byPath, in.path)
	}
}

// release ends every hang.
func (s *injections) release() {
	s.mu.Lock()
	all := s.all
	s.mu.Unlock()
	for _, in := range all {
		in.Release()
	}
}

// missed describes what never happened.
func (s *injections) missed() (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range s.all {
		if !in.fired.Load() && !in.optional.Load() {
			out = append(out, fmt.Sprintf("the fault injected into %s never happened", in.path))
		}
	}
	return out
}
