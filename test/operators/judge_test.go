package operators

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/nodeactor/nodeactor/actors/operator/storage"
)

// accepted is an effect in the order in which the store accepted it.
type accepted struct {
	Effect
	Revision storage.Revision
}

// stale are the effects that must not have been accepted: those of an epoch that was past, and those of a second holder of an epoch.
func stale(log []accepted) (wrong []string) {
	slices.SortFunc(log, func(a, b accepted) int { return cmp.Compare(a.Revision, b.Revision) })
	highest := map[string]uint64{}
	holder := map[at]string{}
	for _, e := range log {
		if e.Epoch < highest[e.Manifest] {
			wrong = append(wrong, fmt.Sprintf("%+v came after epoch %d", e, highest[e.Manifest]))
		}
		highest[e.Manifest] = max(highest[e.Manifest], e.Epoch)
		epoch := at{e.Manifest, e.Epoch}
		if other, there := holder[epoch]; there && other != e.Holder {
			wrong = append(wrong, fmt.Sprintf("%+v is of the epoch of %s", e, other))
		}
		holder[epoch] = e.Holder
	}
	return wrong
}

// judge ends all processes and looks at all effects that were accepted.
func (f *fleet) judge() (effects int) {
	f.t.Helper()
	for _, p := range f.procs {
		p.kill()
	}
	log := f.log()
	for _, wrong := range stale(log) {
		f.t.Errorf("a stale effect was accepted: %s", wrong)
	}
	for _, lost := range f.lost(log) {
		f.t.Error(lost)
	}
	return len(log)
}

// lost finds effects that were answered and are not there.
func (f *fleet) lost(log []accepted) (missing []string) {
	there := map[at]int{}
	for _, e := range log {
		there[at{e.Manifest, e.Epoch}]++
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for a, n := range f.answered {
		if there[a] < n {
			missing = append(missing, fmt.Sprintf("%d effects on %s under epoch %d were answered, there are %d", n, a.manifest, a.epoch, there[a]))
		}
	}
	return missing
}

// effects counts those of each manifest.
func (f *fleet) effects() map[string]int {
	counts := map[string]int{}
	for _, e := range f.log() {
		counts[e.Manifest]++
	}
	return counts
}

// idle tells whether a manifest has had no effect since they were counted.
func (f *fleet) idle(before map[string]int) bool {
	now := f.effects()
	for m, n := range before {
		if now[m] <= n {
			return true
		}
	}
	return false
}

// log reads all effects there are.
func (f *fleet) log() (log []accepted) {
	f.t.Helper()
	store, err := storage.OpenShared(f.store())
	if err != nil {
		f.t.Fatal(err)
	}
	defer store.Close()
	_, err = store.ListObjects(f.t.Context(), effectKind, func(o storage.Object) bool {
		e := accepted{Revision: o.Revision}
		if err := json.Unmarshal(o.Value, &e.Effect); err != nil {
			f.t.Errorf("%s: %v", o.Key(), err)
		}
		log = append(log, e)
		return true
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return log
}

// TestTheJudge: stale effects would be found.
func TestTheJudge(t *testing.T) {
	e := func(revision storage.Revision, manifest, holder string, epoch uint64) accepted {
		return accepted{Effect{manifest, holder, epoch}, revision}
	}
	fine := []accepted{e(1, "m", "a", 1), e(4, "m", "b", 2), e(2, "m", "a", 1), e(3, "n", "b", 7)}
	if wrong := stale(fine); len(wrong) != 0 {
		t.Errorf("these are fine: %q", wrong)
	}
	if wrong := stale(append(fine, e(5, "m", "a", 1))); len(wrong) != 1 {
		t.Errorf("of an epoch that is past: %q", wrong)
	}
	if wrong := stale(append(fine, e(5, "m", "c", 2))); len(wrong) != 1 {
		t.Errorf("of two holders: %q", wrong)
	}
}
