package operator

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/cluster/lease"
)

// site is the specification of the tests.
type site struct {
	Pages int               `json:"pages"`
	Tags  map[string]string `json:"tags,omitempty"`
}

func (site) Kind() string { return "Site" }

// siteStatus is what the tests' operators store.
type siteStatus struct {
	Built int `json:"built"`
}

// noon is when the tests begin.
var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// desk is one stored manifest and the place a pass runs in.
type desk struct {
	t       *testing.T
	rec     Record
	now     time.Time
	commits int
	gone    bool
	// refuse is what commits fail of.
	refuse error
	fence  lease.Fence
	// check is what the store says of the lease; ctx is that of passes.
	check func(context.Context) error
	ctx   context.Context
}

func newDesk(t *testing.T, spec site) *desk {
	d := &desk{t: t, now: noon, ctx: context.Background()}
	d.rec = Record{Metadata: Metadata{Name: "one", UID: "u1", Created: noon}, Status: Status{Phase: PhasePending}}
	d.specify(spec)
	return d
}

// specify is what a user's write does.
func (d *desk) specify(spec site) {
	form, hash, err := Canonical(spec)
	if err != nil {
		d.t.Fatal(err)
	}
	d.rec.Spec, d.rec.Hash = form, hash
	d.rec.Generation++
}

func (d *desk) env() Env {
	return Env{Now: func() time.Time { return d.now }, Jitter: 0.5, Fence: d.fence, Check: d.check, Commit: d.commit}
}

func (d *desk) commit(ctx context.Context, c Change) (Record, error) {
	switch {
	case d.refuse != nil:
		return Record{}, d.refuse
	case d.gone:
		return Record{}, ErrNotFound
	case ctx.Err() != nil:
		return Record{}, ctx.Err()
	}
	d.commits++
	d.rec, d.gone = c.On(d.rec)
	return d.rec, nil
}

// pass runs one pass of an operator.
func (d *desk) pass(op Operator[site], cfg OperatorConfig) Outcome {
	d.t.Helper()
	r, err := NewRunner(op, cfg)
	if err != nil {
		d.t.Fatal(err)
	}
	return r.Pass(d.ctx, d.rec, d.env())
}

// builder is an operator of functions.
type builder struct {
	reconcile func(ctx context.Context, s *ManifestState[site]) (Action, error)
	finalize  func(ctx context.Context, s *ManifestState[site]) error
}

func (b builder) Reconcile(ctx context.Context, s *ManifestState[site]) (Action, error) {
	return b.reconcile(ctx, s)
}

func (b builder) Finalize(ctx context.Context, s *ManifestState[site]) error {
	return b.finalize(ctx, s)
}

// build stores how many pages there are.
func build(_ context.Context, s *ManifestState[site]) (Action, error) {
	return None(), s.SetStatus(siteStatus{Built: s.Manifest.Spec.Pages})
}

var errBroken = errors.New("the press is broken")
