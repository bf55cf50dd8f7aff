package runtime

import (
	"context"
	"sync"

	"github.com/nodeactor/nodeactor/supervision"
)

// gates serialise work by key. Waiting ends with the context.
type gates struct {
	mu   sync.Mutex
	open map[string]*gate
}

type gate struct {
	turn  chan struct{}
	users int
}

// enter waits for its turn at key; the caller calls leave when done. A generation that was replaced meanwhile gets none.
func (g *gates) enter(ctx context.Context, key string) (leave func(), err error) {
	one := g.join(key)
	select {
	case one.turn <- struct{}{}:
		leave = func() { <-one.turn; g.part(key, one) }
		if err := supervision.CheckFence(ctx); err != nil {
			leave()
			return nil, err
		}
		return leave, nil
	case <-ctx.Done():
		g.part(key, one)
		return nil, ctx.Err()
	}
}

func (g *gates) join(key string) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil {
		g.open = map[string]*gate{}
	}
	one := g.open[key]
	if one == nil {
		one = &gate{turn: make(chan struct{}, 1)}
		g.open[key] = one
	}
	one.users++
	return one
}

func (g *gates) part(key string, one *gate) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if one.users--; one.users == 0 {
		delete(g.open, key)
	}
}
