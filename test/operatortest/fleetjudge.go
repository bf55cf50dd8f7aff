package operatortest

import (
	"context"

	"github.com/nodeactor/nodeactor/actors/operator"
)

// complaintsMost is how many manifests are complained about.
const complaintsMost = 10

// judge looks at the end of a story.
func (f *fleet[S]) judge() {
	views, err := f.plane.List(context.Background())
	if err != nil {
		f.t.Fatalf("cannot list the manifests: %v", err)
	}
	there := map[string]operator.View[S]{}
	for _, v := range views {
		there[f.plane.Kind()+"/"+v.Namespace+"/"+v.Name] = v
	}
	complaints := 0
	for _, key := range f.names {
		v, ok := there[key]
		if what := f.wrong(key, v, ok); what != "" {
			if complaints++; complaints <= complaintsMost {
				f.t.Errorf("%s %s", key, what)
			}
		}
	}
	if complaints > complaintsMost {
		f.t.Errorf("and %d more manifests are not as they should be", complaints-complaintsMost)
	}
	f.judgeShares(len(views))
}

// wrong says what is wrong with a manifest in the end, "" for nothing.
func (f *fleet[S]) wrong(key string, v operator.View[S], there bool) string {
	at := f.truth[key]
	holder := f.byID[at.holder]
	switch {
	case at.deleted && there:
		return "was deleted and is still there"
	case at.deleted:
		return ""
	case !there:
		return "is gone"
	case v.Status.Phase != operator.PhaseReady:
		return "is " + string(v.Status.Phase) + ": " + v.Status.LastError
	case v.Status.ObservedGeneration != v.Generation:
		return "is Ready with an old specification"
	case holder == nil || !holder.up || holder.id != at.holder:
		return "is held by " + at.holder.String() + ", which does not live"
	}
	return ""
}

// judgeShares holds that the work is spread evenly.
func (f *fleet[S]) judgeShares(manifests int) {
	live := f.pick(len(f.nodes))
	fair := (manifests + len(live) - 1) / len(live)
	for _, n := range live {
		if held := n.lease.Held(); held > fair {
			f.t.Errorf("%s holds %d manifests in the end, its share is %d", n.id, held, fair)
		}
	}
}
