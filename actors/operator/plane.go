package operator

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator/storage"
)

// ControlPlane is an operator and the store of its manifests. Its methods may be called from any goroutine, before, while and after it
// executes, and by processes that never execute it.
type ControlPlane[S Specification] struct {
	core   *plane
	client client
}

// Plane is a ControlPlane of any specification.
type Plane interface {
	// Kind is the kind of its manifests.
	Kind() string
	// Execute runs it alone.
	Execute(ctx context.Context) error
	// plane is what runs it.
	plane() *plane
}

// plane is a ControlPlane without its type.
type plane struct {
	kind   string
	cfg    OperatorConfig
	store  storage.Store
	opts   options
	runner runner
	// hollow is why it cannot be executed; nil when it can.
	hollow error
	// host runs it now, or did last.
	host atomic.Pointer[host]
	// by is the execution that runs it now.
	by atomic.Pointer[Execution]
	// boots counts the executions that began with it.
	boots atomic.Uint64
}

// nextBoot names another run of the process: a session that has ended never lives again, so no two executions may have the same.
func (p *plane) nextBoot() string {
	if n := p.boots.Add(1); n > 1 {
		return fmt.Sprintf("%s-%d", p.opts.boot, n)
	}
	return p.opts.boot
}

// runner is a Runner of any specification.
type runner interface {
	Pass(ctx context.Context, rec Record, env Env) Outcome
	Due(rec Record, now time.Time) time.Time
}

// NewControlPlane checks an operator and binds it to a store, which stays the caller's to close. ErrSpecification is returned when S
// cannot be a specification; the text names the field. With a nil Func it is one for a process that only reads and writes manifests: it
// cannot be executed.
func NewControlPlane[S Specification](op Operator[S], cfg OperatorConfig, store storage.Store, opts ...Option) (*ControlPlane[S], error) {
	r, err := newRunner(op, cfg)
	if err != nil {
		return nil, err
	}
	if store == nil {
		return nil, fmt.Errorf("cannot make the control plane of %s: it has no store", r.Kind())
	}
	o := chosen(opts)
	core := &plane{kind: r.Kind(), cfg: r.Config(), store: store, opts: o, runner: r}
	if hollow(op) {
		core.hollow = errHollow(core.kind, op)
	}
	return &ControlPlane[S]{core: core, client: client{kind: r.Kind(), store: store, opts: o}}, nil
}

// Kind is the kind of the manifests.
func (c *ControlPlane[S]) Kind() string { return c.core.kind }

// AddManifest creates a manifest, or gives it another specification. name may be namespace/name. A specification of the same content as
// the stored one changes nothing: no new generation, no write, no pass. ErrDeleting is returned while an earlier one of the name goes.
func (c *ControlPlane[S]) AddManifest(ctx context.Context, name string, spec S) error {
	return c.client.put(ctx, parseKey(name), func(rec *Record) error { return specify(rec, spec) })
}

// Apply is AddManifest for a manifest with labels and annotations, which replace those there are.
func (c *ControlPlane[S]) Apply(ctx context.Context, m Manifest[S]) error {
	return c.client.put(ctx, m.Key(), func(rec *Record) error {
		rec.Labels, rec.Annotations = m.Labels, m.Annotations
		return specify(rec, m.Spec)
	})
}

// Delete asks for the deletion of a manifest. It is gone when it returns, unless finalizers hold it. ErrNotFound is returned when there is
// none.
func (c *ControlPlane[S]) Delete(ctx context.Context, name string) error {
	return c.client.remove(ctx, parseKey(name))
}

// Get reads a manifest with its status. ErrNotFound is returned when there is none.
func (c *ControlPlane[S]) Get(ctx context.Context, name string) (View[S], error) {
	rec, _, err := c.client.get(ctx, parseKey(name))
	if err != nil {
		return View[S]{}, fmt.Errorf("cannot read %s %s: %w", c.Kind(), name, err)
	}
	return ViewOf[S](c.core.live(rec))
}

// List reads all manifests with their statuses, in order of namespace and name. An error may come beside them: it names those that are stored and
// cannot be read.
func (c *ControlPlane[S]) List(ctx context.Context) ([]View[S], error) {
	var views []View[S]
	err := c.client.list(ctx, func(rec Record) error {
		view, err := ViewOf[S](c.core.live(rec))
		if err == nil {
			views = append(views, view)
		}
		return err
	})
	if err != nil {
		return views, fmt.Errorf("cannot list all of %s: %w", c.Kind(), err)
	}
	return views, nil
}

// Execute runs the operator until ctx ends, then stops gracefully: it calls running passes off, waits for them, gives the leases back and
// ends the session, so that others take over at once. It returns nil then, and an error when it had to end by itself, or when passes would
// not end. It may be executed again then. ErrKindTaken is returned at once while it executes already.
func (c *ControlPlane[S]) Execute(ctx context.Context) error { return Execute(ctx, c) }

func (c *ControlPlane[S]) plane() *plane { return c.core }

// live is a record with what only this process knows: that a pass runs now.
func (p *plane) live(rec Record) Record {
	h := p.host.Load()
	if h == nil {
		return rec
	}
	if f, ok := h.flying(rec.Key()); ok && !f.lost {
		rec.Status.Phase = PhaseReconciling
		rec.Status.Holder, rec.Status.Epoch = holderName(f.fence.Holder), f.fence.Epoch
	}
	return rec
}
