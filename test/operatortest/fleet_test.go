package operatortest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/test/operatortest"
	"github.com/nodeactor/nodeactor/test/verdict"
)

// site is served at an address.
type site struct {
	Domain string `json:"domain"`
	Pages  int    `json:"pages"`
}

func (site) Kind() string { return "Site" }

type sites struct{}

// Reconcile says where the site is.
func (sites) Reconcile(_ context.Context, s *operator.ManifestState[site]) (operator.Action, error) {
	return operator.None(), s.SetStatus(map[string]string{"url": fmt.Sprintf("https://%s/%d", s.Manifest.Spec.Domain, s.Manifest.Spec.Pages)})
}

// Finalize has nothing to undo.
func (sites) Finalize(context.Context, *operator.ManifestState[site]) error { return nil }

func spec(i, generation int) site {
	return site{Domain: fmt.Sprintf("site-%d.example.com", i), Pages: generation}
}

func TestFleet(t *testing.T) {
	for seed := range uint64(2) {
		size := operatortest.Size{Nodes: 20, Manifests: 200, Seed: seed}
		first := operatortest.Fleet(t, sites{}, size, spec)
		t.Logf("%+v", first)
		if again := operatortest.Fleet(t, sites{}, size, spec); again != first {
			t.Errorf("seed %d took two ways:\n%+v\n%+v", seed, first, again)
		}
	}
}

// TestFleetVerdict lets an operator fail for ever.
func TestFleetVerdict(t *testing.T) {
	broken := operator.Func[site](func(context.Context, *operator.ManifestState[site]) (operator.Action, error) {
		return operator.None(), errors.New("no luck")
	})
	r := verdict.Of(t, func(t testing.TB) { operatortest.Fleet(t, broken, operatortest.Size{Nodes: 3, Manifests: 20}, spec) })
	if !r.Failed() || !strings.Contains(r.Said(), "is Retrying: no luck") || !strings.Contains(r.Said(), "more manifests are not as they should be") {
		t.Errorf("failed %v:\n%s", r.Failed(), r.Said())
	}
}
