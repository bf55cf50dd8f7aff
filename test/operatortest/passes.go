package operatortest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/test/harness"
)

// ErrInjected is returned when a pass was told to fail.
var ErrInjected = errors.New("injected error")

// passes are those of all nodes: they are counted, told to go wrong, and held not to overlap.
type passes struct {
	k  *harness.Kit
	mu sync.Mutex
	// begun is how many passes of a manifest have begun, under the ones that run.
	begun  map[string]int
	under  map[string][]*underway
	faults map[string][]*fault
	let    bool
}

// underway is a pass that runs.
type underway struct {
	ctx  context.Context
	link *link
}

// fault is what a pass is told to do.
type fault struct {
	// at is the pass, by its number; happened is set when it has.
	at       int
	do       func(ctx context.Context) error
	happened bool
}

// around runs a pass, or what it was told to do instead.
func (p *passes) around(ctx context.Context, l *link, name string, do func() error) error {
	me := &underway{ctx, l}
	fault := p.enter(name, me)
	defer p.leave(name, me)
	if fault != nil {
		return fault.do(ctx)
	}
	return do()
}

// enter counts a pass. One that was called off, or whose node is no more, may not have returned yet; any other must have.
func (p *passes) enter(name string, me *underway) *fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun == nil {
		p.begun, p.under = map[string]int{}, map[string][]*underway{}
	}
	for _, other := range p.under[name] {
		if other.ctx.Err() == nil && !other.link.isDead() && supervision.CheckFence(other.ctx) == nil {
			p.k.Errorf("two passes of %s run at a time", name)
		}
	}
	p.under[name] = append(p.under[name], me)
	p.begun[name]++
	for _, f := range p.faults[name] {
		if f.at == p.begun[name] {
			f.happened = true
			return f
		}
	}
	return nil
}

func (p *passes) leave(name string, me *underway) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.under[name] = slices.DeleteFunc(p.under[name], func(other *underway) bool { return other == me })
}

func (p *passes) count(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.begun[name]
}

// release lets those go that hang.
func (p *passes) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.let = true
}

func (p *passes) released() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.let
}

// plant tells the n-th pass from now on to do something else.
func (p *passes) plant(name string, n int, do func(ctx context.Context) error) *fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.faults == nil {
		p.faults = map[string][]*fault{}
	}
	f := &fault{at: p.begun[name] + n, do: do}
	p.faults[name] = append(p.faults[name], f)
	return f
}

// missed are the manifests whose passes were told to go wrong and never began.
func (p *passes) missed() (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, faults := range p.faults {
		for _, f := range faults {
			if !f.happened {
				names = append(names, name)
			}
		}
	}
	return names
}

// pathOf is where the actor of a manifest is in the tree of any node.
func pathOf(name string) string {
	return "operators/kinds/*/manifests/" + strings.ReplaceAll(name, "/", ":")
}

// Panic makes the n-th pass of a manifest from now on panic, on whichever node it runs. Its actor is expected to contain that.
func (k *Kit[S]) Panic(name string, n int) {
	k.Expect(pathOf(name), supervision.Panic)
	k.passes.plant(name, n, func(context.Context) error { panic("injected panic") })
}

// Fail makes the n-th pass of a manifest from now on return ErrInjected.
func (k *Kit[S]) Fail(name string, n int) {
	k.passes.plant(name, n, func(context.Context) error { return ErrInjected })
}

// Hang makes the n-th pass of a manifest from now on wait until its context ends, as when it has had its time.
func (k *Kit[S]) Hang(name string, n int) {
	k.passes.plant(name, n, func(ctx context.Context) error {
		return k.WaitFor(ctx, k.passes.released)
	})
}

// Wedge makes the n-th pass of a manifest from now on hang whatever becomes of its context, until the end of the test. Its actor is expected
// to be given up and replaced.
func (k *Kit[S]) Wedge(name string, n int) {
	k.Expect(pathOf(name), supervision.Hang)
	k.AllowAbandoned()
	k.passes.plant(name, n, func(context.Context) error {
		return k.WaitFor(background(), k.passes.released)
	})
}
