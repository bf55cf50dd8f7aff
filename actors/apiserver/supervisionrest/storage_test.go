package supervisionrest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	api "github.com/nodeactor/nodeactor/actors/apiserver/supervisionapi"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// fakeTree is a root with one pool of numbered members.
type fakeTree struct {
	mu      sync.Mutex
	members int
	visited int
	tell    func(supervision.Change)
}

func (f *fakeTree) path(i int) string { return fmt.Sprintf("node/pods/%06d", i) }

func (f *fakeTree) node(i int) supervision.Node {
	return supervision.Node{Path: f.path(i), Row: "pod", State: core.Running, Generation: 1}
}

func (f *fakeTree) Look(path string) (supervision.Node, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch path {
	case "node", "node/pods":
		return supervision.Node{Path: path, Supervisor: true, State: core.Running}, true
	}
	for i := range f.members {
		if f.path(i) == path {
			return f.node(i), true
		}
	}
	return supervision.Node{}, false
}

func (f *fakeTree) Scan(after string, visit func(supervision.Node) bool) {
	first := 0
	if after == "" {
		for _, path := range []string{"node", "node/pods"} {
			f.visited++
			if n, _ := f.Look(path); !visit(n) {
				return
			}
		}
	}
	if id, ok := strings.CutPrefix(after, "node/pods/"); ok {
		_, _ = fmt.Sscan(strings.TrimLeft(id, "0"), &first)
		first++
	}
	for i := first; i < f.members; i++ {
		f.visited++
		if !visit(f.node(i)) {
			return
		}
	}
}

func (f *fakeTree) Watch(tell func(supervision.Change)) func() {
	f.tell = tell
	return func() { f.tell = nil }
}

func (f *fakeTree) LastCPU() *supervision.CPUShares { return nil }
func (f *fakeTree) Clock() supervision.Clock        { return supervision.RealClock() }

func (f *fakeTree) Spec() *supervision.Spec {
	root, pods, pod := catalog.Row("node"), catalog.Row("pods"), catalog.Row("pod")
	pods.Template = &pod
	root.Children = []supervision.Spec{pods}
	return &root
}

// served returns the storages of a tree with a pool of members.
func served(t *testing.T, members int) (tree *fakeTree, actors, policies *storage) {
	tree = &fakeTree{members: members}
	of := Group(tree).VersionedResourcesStorageMap[api.GroupVersion.Version]
	actors, policies = of[api.Actors].(*storage), of[api.FaultPolicies].(*storage)
	t.Cleanup(actors.Destroy)
	return tree, actors, policies
}

// TestPageCostsAPage: of a hundred thousand actors a page reads its own and one more, from
// whichever place; and the pages together are all.
func TestPageCostsAPage(t *testing.T) {
	const members, limit = 100_000, 500
	tree, actors, _ := served(t, members)
	options := &internalversion.ListOptions{Limit: limit}
	all, revision := 0, ""
	for {
		tree.visited = 0
		obj, err := actors.List(context.Background(), options)
		if err != nil {
			t.Fatal(err)
		}
		list := obj.(*api.ActorList)
		if tree.visited > limit+1 {
			t.Fatalf("a page of %d read %d actors", len(list.Items), tree.visited)
		}
		if revision != "" && list.ResourceVersion != revision {
			t.Fatalf("one page is of %s, another of %s", revision, list.ResourceVersion)
		}
		all, revision = all+len(list.Items), list.ResourceVersion
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	if all != members+2 {
		t.Errorf("the pages have %d actors", all)
	}
}

func TestListOfAnotherStateIsRefused(t *testing.T) {
	_, actors, _ := served(t, 1)
	exactly := &internalversion.ListOptions{ResourceVersion: "7", ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	if _, err := actors.List(context.Background(), exactly); !apierrors.IsResourceExpired(err) {
		t.Errorf("got %v", err)
	}
}

func TestNamesAndPaths(t *testing.T) {
	root := (&fakeTree{}).Spec()
	for name, want := range map[string]string{
		"node": "node", "node:pods": "node/pods", "node:pods:default:web": "node/pods/default:web", "node:pods:*": "node/pods/*",
		"": "", "nod": "", "nodes": "", "node:": "", "node:pod": "", "node:podsx": "", "node:pods:": "", ":node": "", "node::pods": "",
	} {
		if got := Path(root, name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
		if want != "" && Name(want) != name {
			t.Errorf("%q: the way back is %q", name, Name(want))
		}
	}
	if Path(nil, "node") != "" {
		t.Error("before the start there is a path")
	}
	if got := policyName(root, "node/pods/default:web"); got != "node:pods:*" {
		t.Errorf("a member follows %s", got)
	}
}

// TestEveryNameIsAPathSegment: clients put names into paths, so none may break one.
func TestEveryNameIsAPathSegment(t *testing.T) {
	_, actors, policies := served(t, 3)
	for _, s := range []*storage{actors, policies} {
		list, err := s.List(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = apimeta.EachListItem(list, func(o runtime.Object) error {
			name := o.(object).GetName()
			if name == "" || strings.ContainsAny(name, "/%") {
				t.Errorf("%q", name)
			}
			return nil
		})
	}
}

// next returns what a watch has sent by the time that everything is at rest.
func next(w watch.Interface) (got []string) {
	synctest.Wait()
	for {
		select {
		case e, open := <-w.ResultChan():
			if !open {
				return append(got, "end")
			}
			got = append(got, string(e.Type)+" "+e.Object.(object).GetName())
			synctest.Wait()
		default:
			return got
		}
	}
}

func TestWatchOfAPoolThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree, actors, policies := served(t, 2)
		w, err := actors.Watch(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		fixed, err := policies.Watch(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(next(w), ", "); got != "ADDED node, ADDED node:pods, ADDED node:pods:000000, ADDED node:pods:000001" {
			t.Errorf("got %s", got)
		}
		if got := strings.Join(next(fixed), ", "); got != "ADDED node, ADDED node:pods, ADDED node:pods:*" {
			t.Errorf("got %s", got)
		}
		tree.mu.Lock()
		tree.members = 1
		tree.mu.Unlock()
		for range 100 {
			tree.tell(supervision.Change{Path: "node/pods"})
		}
		settled(t, actors)
		if got := strings.Join(next(w), ", "); got != "MODIFIED node:pods, DELETED node:pods:000001" {
			t.Errorf("got %s", got)
		}
		if got := next(fixed); got != nil {
			t.Errorf("a policy has changed: %v", got)
		}
		actors.Destroy()
		for _, w := range []watch.Interface{w, fixed} {
			if got := next(w); len(got) != 1 || got[0] != "end" {
				t.Errorf("after the end there is %v", got)
			}
			w.Stop()
		}
		if tree.tell != nil {
			t.Error("the tree is still watched")
		}
	})
}

// settled lets the time pass for which changes are collected.
func settled(t *testing.T, s *storage) {
	t.Helper()
	if err := s.tree.Clock().Sleep(t.Context(), 2*settle); err != nil {
		t.Fatal(err)
	}
}

func TestOldRevisionsAreForgotten(t *testing.T) {
	tree, actors, _ := served(t, 1)
	old := &internalversion.ListOptions{ResourceVersion: actors.feed.revision()}
	for range kept {
		tree.tell(supervision.Change{Path: "node/pods"})
	}
	w, err := actors.Watch(t.Context(), old)
	if err != nil {
		t.Fatalf("a revision that is remembered: %v", err)
	}
	w.Stop()
	tree.tell(supervision.Change{Path: "node/pods"})
	if _, err := actors.Watch(t.Context(), old); !apierrors.IsResourceExpired(err) {
		t.Errorf("one that is not: %v", err)
	}
}

func TestBookmarkEndsTheBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, actors, _ := served(t, 1)
		yes := true
		w, err := actors.Watch(t.Context(), &internalversion.ListOptions{SendInitialEvents: &yes, AllowWatchBookmarks: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := next(w); len(got) != 4 || got[3] != "BOOKMARK " {
			t.Errorf("got %v", got)
		}
		w.Stop()
	})
}

func TestConditions(t *testing.T) {
	fault := &supervision.Fault{Kind: supervision.Panic, Path: "node/x", Generation: 3, Message: "m", Err: fmt.Errorf("%s", strings.Repeat("é", maxMessage))}
	for _, c := range []struct {
		name string
		node supervision.Node
		want string
	}{
		{"running", supervision.Node{State: core.Running}, "Ready=True/Running Parked=False/WithinBudget Abandoned=False/NothingLeftBehind"},
		{"hung", supervision.Node{State: core.Running, Hung: true}, "Ready=False/Hung Parked=False/WithinBudget Abandoned=False/NothingLeftBehind"},
		{"parked", supervision.Node{State: core.Parked, LastFault: fault}, "Ready=False/Parked Parked=True/CrashLoopBackOff Abandoned=False/NothingLeftBehind"},
		{"zombie", supervision.Node{State: core.Running, Abandoned: 1, Zombies: []supervision.Zombie{{Generation: 2}}}, "Ready=True/Running Parked=False/WithinBudget Abandoned=True/WouldNotStop"},
	} {
		var got []string
		for _, is := range conditionsOf(&c.node) {
			got = append(got, fmt.Sprintf("%s=%s/%s", is.Type, is.Status, is.Reason))
			if len(is.Message) > maxMessage+len("…") {
				t.Errorf("%s: a message of %d bytes", c.name, len(is.Message))
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}
