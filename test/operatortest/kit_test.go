package operatortest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/test/harness"
	"github.com/nodeactor/nodeactor/test/operatortest"
	"github.com/nodeactor/nodeactor/test/verdict"
)

type kit = operatortest.Kit[site]

// add makes some manifests.
func add(k *kit, names ...string) {
	for _, name := range names {
		k.Add(name, site{Domain: name})
	}
}

// moved changes every manifest and demands that all become Ready again: somebody tends each of them.
func moved(k *kit, names ...string) {
	for _, name := range names {
		k.Add(name, site{Domain: name, Pages: k.Passes(name)})
	}
	k.AllReady()
}

var four = []string{"a", "b", "shop/c", "shop/d"}

func TestFaults(t *testing.T) {
	for name, f := range map[string]func(k *kit){
		"a panic":  func(k *kit) { k.Panic("a", 1) },
		"an error": func(k *kit) { k.Fail("a", 1); k.Fail("a", 2) },
		"a hang":   func(k *kit) { k.Hang("shop/c", 1) },
		"a wedge":  func(k *kit) { k.Wedge("a", 1); k.Advance(3 * time.Minute) },
		"a crash": func(k *kit) {
			k.Advance(3 * time.Second)
			k.Kill(k.Holder("a"))
			moved(k, four...)
			k.Start("node-9")
			k.Advance(10 * time.Second)
		},
		"a host that vanishes": func(k *kit) {
			k.Advance(3 * time.Second)
			k.Vanish(k.Holder("a"))
			moved(k, four...)
		},
		"a partition": func(k *kit) {
			k.Advance(3 * time.Second)
			k.Partition("node-1", "node-2")
			moved(k, four...)
			k.Heal()
			k.Advance(20 * time.Second)
			moved(k, four...)
		},
		"a stop": func(k *kit) {
			k.AllReady()
			k.Stop("node-1")
			k.Advance(2 * time.Second)
			moved(k, four...)
			k.Start("node-1")
			k.Advance(10 * time.Second)
		},
		"a deletion": func(k *kit) { k.AllReady(); k.Delete("b"); k.Gone("b") },
	} {
		t.Run(name, func(t *testing.T) {
			operatortest.Sim(t, sites{}, func(k *kit) {
				add(k, four...)
				f(k)
				moved(k, four[2:]...)
			}, operatortest.Seeds(4))
		})
	}
}

func TestBubble(t *testing.T) {
	operatortest.Bubble(t, sites{}, func(k *kit) {
		add(k, four...)
		k.Panic("a", 1)
		k.AllReady()
		k.Kill("node-2")
		moved(k, four...)
	})
}

// TestStatus looks at what the operator has stored.
func TestStatus(t *testing.T) {
	operatortest.Sim(t, sites{}, func(k *kit) {
		k.Add("a", site{Domain: "example.com", Pages: 3})
		k.AllReady()
		var status map[string]string
		if k.Status("a", &status); status["url"] != "https://example.com/3" || k.Passes("a") != 1 {
			k.Errorf("%v after %d passes", status, k.Passes("a"))
		}
		// The same again changes nothing.
		k.Add("a", site{Domain: "example.com", Pages: 3})
		k.Advance(time.Minute)
		if k.Passes("a") != 1 {
			k.Errorf("%d passes", k.Passes("a"))
		}
	}, operatortest.Nodes(1))
}

// motto is a kind that the operator below reads.
type motto struct {
	Text string `json:"text"`
}

func (motto) Kind() string { return "Motto" }

// TestReads changes what all manifests read.
func TestReads(t *testing.T) {
	all := func(operator.View[motto]) []operator.Key { return []operator.Key{{Name: "a"}, {Name: "b"}} }
	quote := operator.Func[site](func(ctx context.Context, s *pass) (operator.Action, error) {
		m, err := operator.Get[motto](ctx, operator.Key{Name: "today"})
		if err != nil {
			return operator.None(), err
		}
		return operator.None(), s.SetStatus(m.Spec.Text)
	})
	operatortest.Sim(t, quote, func(k *kit) {
		mottos, err := operator.NewControlPlane(operator.Func[motto](nil), operator.OperatorConfig{}, k.Store(), operator.WithBoot("user"), operator.WithClock(k.Clock()))
		if err != nil {
			k.Fatalf("%v", err)
		}
		for _, text := range []string{"one for all", "all for one"} {
			if err := mottos.AddManifest(k.Context(), "today", motto{text}); err != nil {
				k.Fatalf("%v", err)
			}
			add(k, "a", "b")
			k.AllReady()
			k.Await(10*time.Second, func() bool {
				var a, b string
				k.Status("a", &a)
				k.Status("b", &b)
				return a == text && b == text
			})
		}
	}, operatortest.Seeds(5), operatortest.Config(operator.OperatorConfig{Reads: []operator.Read{operator.Reads(all)}}))
}

type pass = operator.ManifestState[site]

// TestVerdicts holds that what is judged without a word of the test fails it.
func TestVerdicts(t *testing.T) {
	good := func(context.Context, *pass) (operator.Action, error) { return operator.None(), nil }
	for _, c := range []struct {
		name, want string
		reconcile  func(ctx context.Context, s *pass) (operator.Action, error)
		test       func(k *kit)
	}{
		{"a panic that nobody ordered", "undeclared fault: Panic of operators/kinds/Site/manifests/a",
			func(context.Context, *pass) (operator.Action, error) { panic("oops") },
			func(k *kit) { k.Allow("x"); add(k, "a"); k.Advance(time.Second) }},
		{"a panic that did not come", "no pass of a came that was to go wrong", good,
			func(k *kit) { add(k, "a"); k.Panic("a", 7); k.AllReady() }},
		{"never ready", "after 2m0s a is not Ready",
			func(context.Context, *pass) (operator.Action, error) { return operator.None(), errors.New("no luck") },
			func(k *kit) { add(k, "a"); k.AllReady() }},
		{"neither ready nor parked", "after 10m0s a is neither Ready nor Parked",
			func(context.Context, *pass) (operator.Action, error) { return operator.None(), errors.New("no luck") },
			func(k *kit) { add(k, "a") }},
		{"still there", "b is still there",
			func(_ context.Context, s *pass) (operator.Action, error) {
				s.AddFinalizer("stays")
				return operator.None(), nil
			},
			func(k *kit) { add(k, "b"); k.AllReady(); k.Delete("b") }},
	} {
		r := verdict.Of(t, func(t testing.TB) {
			operatortest.Sim(t, operator.Func[site](c.reconcile), c.test, operatortest.Seeds(1), operatortest.Harness(harness.Parallel()))
		})
		if !r.Failed() || !strings.Contains(r.Said(), c.want) {
			t.Errorf("%s: failed %v, want %q in\n%s", c.name, r.Failed(), c.want, r.Said())
		}
		if !strings.Contains(r.Said(), "-run '^TestVerdicts$' github.com/nodeactor/nodeactor/test/operatortest") {
			t.Errorf("%s: no command to run it again in\n%s", c.name, r.Said())
		}
	}
}
