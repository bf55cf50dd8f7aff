package runtime

import (
	"context"
	"fmt"
	"slices"
)

// List implements Runtime.
func (e *Engine) List(ctx context.Context) ([]PodRecord, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	records := make(map[string]*PodRecord, len(e.pods))
	for uid, p := range e.pods {
		records[uid] = &PodRecord{Spec: p.record.Spec, Sandbox: e.sandboxView(p), Ready: e.sandboxReady(p)}
	}
	for _, c := range e.containers {
		e.observe(c)
		if r := records[c.record.Spec.PodUID]; r != nil && !c.broken && !c.record.Pause {
			r.Containers = append(r.Containers, c.view())
		}
	}
	return sorted(records), nil
}

func (e *Engine) sandboxReady(p *pod) bool {
	if p.pause != nil {
		e.observe(p.pause)
	}
	return p.ready && (p.pause == nil || p.pause.running())
}

func sorted(records map[string]*PodRecord) []PodRecord {
	out := make([]PodRecord, 0, len(records))
	for _, r := range records {
		slices.SortFunc(r.Containers, func(a, b Container) int { return a.CreatedAt.Compare(b.CreatedAt) })
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b PodRecord) int { return a.Sandbox.CreatedAt.Compare(b.Sandbox.CreatedAt) })
	return out
}

// Container implements Runtime.
func (e *Engine) Container(_ context.Context, id string) (Container, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c, err := e.find(id)
	if err != nil {
		return Container{}, fmt.Errorf("container %s: %w", id, err)
	}
	e.observe(c)
	return c.view(), nil
}
