package standin

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// errMade is returned where a test asked for an error.
var errMade = errors.New("an error was asked for")

// generation is one life of a child.
type generation struct {
	path string
	gen  uint64
}

// World is what the stand-ins of one tree share. The zero value is not usable: see NewWorld.
type World struct {
	Store *Store
	// Hold blocks its caller until the condition holds; where a scheduler runs everything it is
	// the scheduler's. Nil blocks the goroutine until Free.
	Hold func(until func() bool)

	// Begun, which may be nil, is told of each generation that begins.
	Begun func(path string, f supervision.Fence)

	// templates are those of the pools, by path.
	templates map[string]core.ChildSpec

	mu      sync.Mutex
	plans   map[place]plan
	mail    map[string]bool
	handled map[string]int
	refused []generation
	free    chan struct{}
	freed   atomic.Bool
}

// NewWorld makes a world in which nothing goes wrong. Inside a bubble it must be made there.
func NewWorld() *World {
	return &World{
		Store: newStore(), templates: map[string]core.ChildSpec{}, plans: map[place]plan{}, mail: map[string]bool{}, handled: map[string]int{},
		free: make(chan struct{}),
	}
}

// Arm has something go wrong at a point of a child, the next times that it comes there; a
// negative number stands for always.
func (w *World) Arm(path string, at Point, d Deed, times int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plans[place{path, at}] = plan{d, times}
}

// Disarm undoes Arm.
func (w *World) Disarm(path string, at Point) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.plans, place{path, at})
}

// Free lets everything that is wedged or spins go on.
func (w *World) Free() {
	if w.freed.CompareAndSwap(false, true) {
		close(w.free)
	}
}

// Mail gives a child a message that is delivered again to each new generation until one has
// handled it.
func (w *World) Mail(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mail[path] = true
}

// HasMail tells whether that message still waits.
func (w *World) HasMail(path string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mail[path]
}

// Handled is how many Pokes a child has handled, over all its generations.
func (w *World) Handled(path string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.handled[path]
}

// Refused is how many effects were refused to generations that came back from a hang too late.
func (w *World) Refused() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.refused)
}

// RefusedTo tells whether that happened to a generation.
func (w *World) RefusedTo(path string, gen uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.refused, generation{path, gen})
}

func (w *World) begun(c supervision.Context) {
	if w.Begun != nil {
		w.Begun(c.Path(), c.Fence())
	}
}

func (w *World) handledOne(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handled[path]++
	delete(w.mail, path)
}

// due takes the deed that is planned at a place.
func (w *World) due(path string, at Point) Deed {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := place{path, at}
	p, ok := w.plans[key]
	if !ok {
		return 0
	}
	if p.times--; p.times == 0 {
		delete(w.plans, key)
	} else {
		w.plans[key] = p
	}
	return p.deed
}

// act does what is planned at a place.
func (w *World) act(ctx context.Context, c supervision.Context, spec *core.ChildSpec, at Point) error {
	switch w.due(c.Path(), at) {
	case Panics:
		panic("a panic was asked for")
	case Exits:
		runtime.Goexit()
	case Errs:
		return errMade
	case CannotBind:
		return &supervision.BindError{Addr: c.Path(), Err: syscall.EADDRINUSE}
	case Blocks:
		_ = c.Clock().Sleep(ctx, ever)
	case Wedges:
		w.wedge()
		w.lateEffect(c)
	case Spins:
		for !w.freed.Load() {
		}
		w.lateEffect(c)
	case Slow:
		_ = c.Clock().Sleep(ctx, time.Duration(slowShare*float64(spec.HangAfter)))
	}
	return nil
}

// ever is longer than any test.
const ever = 1 << 62 * time.Nanosecond

// wedge waits for Free.
func (w *World) wedge() {
	if w.Hold != nil {
		w.Hold(w.freed.Load)
		return
	}
	<-w.free
}

// lateEffect is what a generation tries that has come back from a hang.
func (w *World) lateEffect(c supervision.Context) {
	if c.Fence().Check() != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.refused = append(w.refused, generation{c.Path(), c.Generation()})
	}
}
