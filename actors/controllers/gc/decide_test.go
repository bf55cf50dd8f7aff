package gc

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodeactor/nodeactor/actors/cache"
)

func object(uid string, changes ...func(*cache.Meta)) *cache.Meta {
	m := &cache.Meta{Key: "/registry/pods/ns/" + uid, APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: uid, UID: types.UID(uid), Revision: 7}
	for _, change := range changes {
		change(m)
	}
	return m
}

func deleting(finalizers ...string) func(*cache.Meta) {
	return func(m *cache.Meta) { m.Deleting, m.Finalizers = true, finalizers }
}

func ownedBy(uids ...string) func(*cache.Meta) {
	return func(m *cache.Meta) {
		for _, uid := range uids {
			m.Owners = append(m.Owners, cache.Owner{APIVersion: "v1", Kind: "Pod", Name: uid, UID: types.UID(uid), Blocks: true, Controller: true})
		}
	}
}

const foreground, orphaning = metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents

func TestDecide(t *testing.T) {
	plainChild := object("child", ownedBy("x"))
	waitingChild := object("child", ownedBy("x"), deleting(foreground))
	freeChild := object("child", ownedBy("x"), func(m *cache.Meta) { m.Owners[0].Blocks = false })
	for name, c := range map[string]struct {
		item   item
		verb   verb
		policy metav1.DeletionPropagation
		refs   int
	}{
		"no owners":                           {item: item{Meta: object("x")}},
		"owner present":                       {item: item{Meta: object("x", ownedBy("a")), owners: []ownerState{solid}}},
		"owner absent":                        {item: item{Meta: object("x", ownedBy("a")), owners: []ownerState{absent}}, verb: remove, policy: metav1.DeletePropagationBackground},
		"one owner absent":                    {item: item{Meta: object("x", ownedBy("a", "b")), owners: []ownerState{absent, solid}}, verb: forget, refs: 1},
		"absent, leaving, present":            {item: item{Meta: object("x", ownedBy("a", "b", "c")), owners: []ownerState{absent, leaving, solid}}, verb: forget, refs: 2},
		"owner leaving":                       {item: item{Meta: object("x", ownedBy("a")), owners: []ownerState{leaving}}, verb: remove, policy: metav1.DeletePropagationBackground},
		"owner leaving, has dependents":       {item: item{Meta: object("x", ownedBy("a")), owners: []ownerState{leaving}, dependents: []*cache.Meta{plainChild}}, verb: remove, policy: metav1.DeletePropagationForeground},
		"circle":                              {item: item{Meta: object("x", ownedBy("a")), owners: []ownerState{leaving}, dependents: []*cache.Meta{waitingChild}}, verb: unblock, policy: metav1.DeletePropagationForeground},
		"going already":                       {item: item{Meta: object("x", ownedBy("a"), deleting("other")), owners: []ownerState{absent}}},
		"orphaning":                           {item: item{Meta: object("x", deleting(orphaning)), dependents: []*cache.Meta{plainChild}}, verb: orphan},
		"foreground, blocked":                 {item: item{Meta: object("x", deleting(foreground)), dependents: []*cache.Meta{plainChild}}},
		"foreground, free dependents":         {item: item{Meta: object("x", deleting(foreground)), dependents: []*cache.Meta{freeChild}}, verb: release},
		"foreground, alone":                   {item: item{Meta: object("x", deleting(foreground))}, verb: release},
		"foreground, blocked, owner absent":   {item: item{Meta: object("x", ownedBy("a"), deleting(foreground)), owners: []ownerState{absent}, dependents: []*cache.Meta{plainChild}}},
		"foreground, blocked, one owner gone": {item: item{Meta: object("x", ownedBy("a", "b"), deleting(foreground)), owners: []ownerState{absent, solid}, dependents: []*cache.Meta{plainChild}}, verb: forget, refs: 1},
		"own orphan finalizer":                {item: item{Meta: object("x", ownedBy("a"), func(m *cache.Meta) { m.Finalizers = []string{orphaning} }), owners: []ownerState{absent}}, verb: remove, policy: metav1.DeletePropagationOrphan},
	} {
		v := decide(c.item)
		if v.verb != c.verb || v.policy != c.policy || len(v.refs) != c.refs {
			t.Errorf("%s: got %+v", name, v)
		}
	}
}

func TestPatches(t *testing.T) {
	m := object("x", ownedBy("a", "b"), deleting(foreground, "keep"))
	for name, c := range map[string]struct {
		patch patched
		want  string
	}{
		"finalizer": {withoutFinalizer(m, foreground), `{"metadata":{"uid":"x","resourceVersion":"7","finalizers":["keep"]}}`},
		"last finalizer": {withoutFinalizer(object("x", deleting(foreground)), foreground),
			`{"metadata":{"uid":"x","resourceVersion":"7","finalizers":[]}}`},
		"owner": {withoutOwners(m, []types.UID{"a"}),
			`{"metadata":{"uid":"x","resourceVersion":"7","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"b","uid":"b","controller":true,"blockOwnerDeletion":true}]}}`},
		"all owners": {withoutOwners(m, []types.UID{"a", "b"}), `{"metadata":{"uid":"x","resourceVersion":"7","ownerReferences":[]}}`},
		"blocking": {withoutBlocking(object("x", ownedBy("a"))),
			`{"metadata":{"uid":"x","resourceVersion":"7","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"a","uid":"a","controller":true}]}}`},
	} {
		got, err := json.Marshal(c.patch)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}
