package adapter

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"

	"github.com/nodeactor/nodeactor/store/engine"
	"github.com/nodeactor/nodeactor/store/index"
)

// TestASelectorOfLabelsAsksForNothingElse: the fields of an object, which are dear to compute, are computed only for a selector of fields, and
// for one event only once, however many watchers select by them.
func TestASelectorOfLabelsAsksForNothingElse(t *testing.T) {
	asked := 0
	attrs := func(runtime.Object) (labels.Set, fields.Set, error) {
		asked++
		return labels.Set{"app": "a"}, fields.Set{"metadata.name": "p"}, nil
	}
	pod := &example.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"app": "a"}}}
	owner := &formOwner{}
	for _, c := range []struct {
		label, field string
		matches      bool
		asks         int
	}{
		{"", "", true, 0}, {"app=a", "", true, 0}, {"app=b", "", false, 0}, {"", "metadata.name=p", true, 1}, {"app=a", "metadata.name=q", false, 1},
	} {
		asked = 0
		label, _ := labels.Parse(c.label)
		m := newMatcher(&storage.SelectionPredicate{Label: label, Field: fields.ParseSelectorOrDie(c.field), GetAttrs: attrs})
		ev := anEvent(t)
		for range 100 {
			if got, err := m.matchesEvent(ev, owner, ev.Item, pod); err != nil || got != c.matches {
				t.Errorf("labels %q, fields %q: got %v, %v", c.label, c.field, got, err)
			}
		}
		if asked != c.asks {
			t.Errorf("labels %q, fields %q: the attributes were computed %d times for a hundred watchers, want %d", c.label, c.field, asked, c.asks)
		}
	}
}

// anEvent is a new event of a new index.
func anEvent(t *testing.T) index.Event {
	t.Helper()
	x := index.New(nil)
	x.Load(nil, 1)
	sub := x.Subscribe(index.SubscribeOptions{After: 1})
	defer sub.Close()
	x.Apply(engine.Batch{Revision: 2, Changes: []engine.Change{{KV: engine.KV{Key: "/registry/pods/p", ModRevision: 2}}}})
	events, err := sub.Poll(context.Background())
	if err != nil || len(events) != 1 {
		t.Fatalf("got %v, %v", events, err)
	}
	return events[0]
}
