package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	api "github.com/nodeactor/nodeactor/actors/apiserver/supervisionapi"
	"github.com/nodeactor/nodeactor/cluster/identity"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// doer is a worker whose messages are functions.
func doer() supervision.Handler {
	return supervision.HandlerFunc(func(_ supervision.Context, msg any) error {
		if f, ok := msg.(func() error); ok {
			return f()
		}
		return nil
	})
}

// testTree starts a small tree of catalog rows: a worker, and a pool.
func testTree(t testing.TB) *supervision.System {
	t.Helper()
	sys, err := supervision.New(supervision.Config{Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	scheduler, manifests, reconciler := catalog.Row("scheduler"), catalog.Row("manifests"), catalog.Row("reconciler")
	scheduler.Start, scheduler.HangAfter = doer, 2*scheduler.HangAfter
	scheduler.Policy[supervision.Panic].Backoff.Initial = 10 * time.Millisecond
	reconciler.Start = doer
	manifests.Template = &reconciler
	root := catalog.Row("node")
	root.Children = []supervision.Spec{scheduler, manifests}
	if err := sys.Start(root); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sys.Stop(context.Background()) })
	return sys
}

// treeFixture is a server that serves a small tree.
type treeFixture struct {
	*fixture
	sys  *supervision.System
	pool supervision.Pool
}

func newTreeFixture(t testing.TB) *treeFixture {
	sys := testTree(t)
	f := newFixtureIn(t, t.TempDir(), Config{Tree: sys})
	return &treeFixture{fixture: f, sys: sys, pool: sys.Pool("node/manifests")}
}

// add puts a member into the pool and waits until it runs.
func (f *treeFixture) add(t *testing.T, id string) {
	t.Helper()
	f.pool.Ensure(id, doer)
	eventually(t, f.ctx, func() error {
		if s := f.actor(t, "node:manifests:"+id).Status.State; s != api.Running {
			return fmt.Errorf("it is %s", s)
		}
		return nil
	})
}

func (f *treeFixture) client(t *testing.T, resource string) dynamic.ResourceInterface {
	t.Helper()
	config := f.InProcess(identity.AdminUser, identity.MastersGroup)
	return dynamic.NewForConfigOrDie(config).Resource(api.GroupVersion.WithResource(resource))
}

// actor reads one actor.
func (f *treeFixture) actor(t *testing.T, name string) api.Actor {
	t.Helper()
	return read[api.Actor](t, f, api.Actors, name)
}

func read[T any](t *testing.T, f *treeFixture, resource, name string) (out T) {
	t.Helper()
	u, err := f.client(t, resource).Get(f.ctx, name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTreeIsDiscovered(t *testing.T) {
	f := newTreeFixture(t)
	client := discovery.NewDiscoveryClientForConfigOrDie(f.listen(t))
	list, err := client.ServerResourcesForGroupVersion(api.GroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range list.APIResources {
		got[r.Name] = strings.Join(append(append([]string{r.Kind, r.SingularName}, r.ShortNames...), r.Verbs...), " ")
		if r.Namespaced {
			t.Errorf("%s is namespaced", r.Name)
		}
	}
	want := map[string]string{api.Actors: "Actor actor act get list watch", api.FaultPolicies: "FaultPolicy faultpolicy fp get list watch"}
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s: got %q, want %q", name, got[name], want[name])
		}
	}
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	path := paths["apis/"+api.GroupVersion.String()]
	if path == nil {
		t.Fatal("there is no document")
	}
	if schema := openAPISchema(t, path, "io.nodeactor.supervision.v1alpha1.ActorStatus"); !strings.Contains(schema, "Parked has spent its budget") {
		t.Errorf("got %s", schema)
	}
	if schema := openAPISchema(t, path, api.Actor{}.OpenAPIModelName()); !strings.Contains(schema, `"kind":"Actor","version":"v1alpha1"`) {
		t.Errorf("the schema does not say which kind it is of: %s", schema)
	}
	v2, err := client.OpenAPISchema()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range v2.GetDefinitions().GetAdditionalProperties() {
		if d.GetName() == (api.FaultPolicy{}).OpenAPIModelName() {
			return
		}
	}
	t.Error("the v2 document does not describe fault policies")
}

func TestActorsAreReadFromTheTree(t *testing.T) {
	f := newTreeFixture(t)
	f.add(t, "default:web")
	a := f.actor(t, "node:scheduler")
	if a.Spec.Path != "node/scheduler" || a.Spec.Row != "scheduler" || a.Spec.Kind != api.Worker || a.Spec.Supervisor != "node" || a.Status.State != api.Running {
		t.Errorf("got %+v", a)
	}
	if c := a.Status.Conditions[0]; c.Type != api.ConditionReady || c.Status != metav1.ConditionTrue {
		t.Errorf("got %+v", c)
	}
	if a.Status.CPU != "" || a.Status.CPUMeasured != nil {
		t.Errorf("nobody has measured, and there is %q of %v", a.Status.CPU, a.Status.CPUMeasured)
	}
	if _, err := f.sys.MeasureCPU(f.ctx, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if now := f.actor(t, "node:scheduler").Status; now.CPU == "" || now.CPUMeasured == nil {
		t.Errorf("after a measurement there is %q of %v", now.CPU, now.CPUMeasured)
	}
	if root := f.actor(t, "node"); root.Spec.Kind != api.Supervisor || root.Spec.Supervisor != "" || root.UID == a.UID {
		t.Errorf("got %+v", root)
	}
	m := f.actor(t, "node:manifests:default:web")
	if m.Spec.Path != "node/manifests/default:web" || m.Spec.FaultPolicy != "node:manifests:*" || m.Labels[api.LabelRow] != "reconciler" {
		t.Errorf("got %+v", m)
	}
	for _, name := range []string{"node:schedule", "node:manifests:default:nobody", "no", "node:", "node::scheduler", "node:manifests:"} {
		if _, err := f.client(t, api.Actors).Get(f.ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := f.client(t, api.Actors).Get(f.ctx, "node:schedulr", metav1.GetOptions{}); !strings.HasSuffix(err.Error(), "did you mean node:scheduler?") {
		t.Errorf("got %v", err)
	}
}

func TestActorsAreListedInPages(t *testing.T) {
	f := newTreeFixture(t)
	ids := []string{"a:1", "a:2", "b:1", "c"}
	for _, id := range ids {
		f.add(t, id)
	}
	var got []string
	options := metav1.ListOptions{Limit: 2}
	for page := 1; ; page++ {
		list, err := f.client(t, api.Actors).List(f.ctx, options)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range list.Items {
			got = append(got, i.GetName())
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			break
		}
		if page == 2 {
			f.pool.Stop("a:1") // the object behind which the next page begins may be gone
		}
	}
	want := "node node:scheduler node:manifests node:manifests:a:1 node:manifests:a:2 node:manifests:b:1 node:manifests:c"
	if strings.Join(got, " ") != want {
		t.Errorf("got %v", got)
	}
	if _, err := f.client(t, api.Actors).List(f.ctx, metav1.ListOptions{Limit: 1, Continue: "nonsense"}); !apierrors.IsBadRequest(err) {
		t.Errorf("got %v", err)
	}
}

func TestActorsAreSelected(t *testing.T) {
	f := newTreeFixture(t)
	f.add(t, "default:web")
	for selector, want := range map[string]int{
		"spec.row=reconciler": 1, "spec.row!=reconciler": 3, "status.state=Running": 4, "status.state=Parked": 0, "spec.kind=Supervisor": 2,
		"spec.path=node/scheduler": 1, "metadata.name=node:manifests:default:web": 1,
	} {
		list, err := f.client(t, api.Actors).List(f.ctx, metav1.ListOptions{FieldSelector: selector})
		if err != nil || len(list.Items) != want {
			t.Errorf("%s: got %d, %v; want %d", selector, len(list.Items), err, want)
		}
	}
	list, err := f.client(t, api.Actors).List(f.ctx, metav1.ListOptions{LabelSelector: api.LabelRow + "=scheduler"})
	if err != nil || len(list.Items) != 1 {
		t.Errorf("got %v, %v", list, err)
	}
	_, err = f.client(t, api.Actors).List(f.ctx, metav1.ListOptions{FieldSelector: "status.color=blue"})
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "status.state") {
		t.Errorf("got %v", err)
	}
}

func TestFaultPoliciesShowWhatIsInForce(t *testing.T) {
	f := newTreeFixture(t)
	p := read[api.FaultPolicy](t, f, api.FaultPolicies, "node:scheduler")
	if p.Spec.Reactions.Panic.Do != "restart" || p.Spec.Reactions.Panic.Backoff.Initial.Duration != 10*time.Millisecond || p.Spec.Group != nil || p.Spec.Restart != "permanent" {
		t.Errorf("got %+v", p.Spec)
	}
	if got := strings.Join(p.Status.Overrides, " "); !p.Status.Overridden || got != "hangAfter reactions.panic" {
		t.Errorf("got %+v", p.Status)
	}
	pool := read[api.FaultPolicy](t, f, api.FaultPolicies, "node:manifests")
	if g := pool.Spec.Group; g == nil || g.Strategy != "pool" || g.Burst.Max == 0 || pool.Status.Overridden {
		t.Errorf("got %+v", pool)
	}
	list, err := f.client(t, api.FaultPolicies).List(f.ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, i := range list.Items {
		names = append(names, i.GetName())
	}
	if got := strings.Join(names, " "); got != "node node:scheduler node:manifests node:manifests:*" {
		t.Errorf("got %s", got)
	}
}

func TestTreeIsPrintedAsTable(t *testing.T) {
	f := newTreeFixture(t)
	for resource, want := range map[string]string{
		"actors":        "Path Kind State Gen Restarts Mailbox Oldest LastFault Age",
		"faultpolicies": "Path Kind Panic Hang Error Bind Strategy Budget Overridden",
	} {
		table := f.table(t, "/apis/"+api.GroupVersion.String()+"/"+resource)
		var columns []string
		for _, c := range table.ColumnDefinitions {
			if c.Priority == 0 {
				columns = append(columns, c.Name)
			}
		}
		if got := strings.Join(columns, " "); got != want {
			t.Errorf("got %s", got)
		}
		for _, row := range table.Rows {
			if len(row.Cells) != len(table.ColumnDefinitions) {
				t.Errorf("%s: %d cells in %d columns", resource, len(row.Cells), len(table.ColumnDefinitions))
			}
		}
	}
	one := f.table(t, "/apis/"+api.GroupVersion.String()+"/actors/node:scheduler")
	if len(one.Rows) != 1 || one.Rows[0].Cells[0] != "node:scheduler" || one.Rows[0].Cells[2] != "Running" {
		t.Errorf("got %+v", one.Rows)
	}
}

// table asks for a table as kubectl does.
func (f *treeFixture) table(t *testing.T, path string) (table metav1.Table) {
	t.Helper()
	raw, err := f.raw(t).Get().AbsPath(path).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json").DoRaw(f.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &table); err != nil {
		t.Fatal(err)
	}
	return table
}

func (f *treeFixture) raw(t *testing.T) rest.Interface {
	t.Helper()
	return kubernetes.NewForConfigOrDie(f.InProcess(identity.AdminUser, identity.MastersGroup)).CoreV1().RESTClient()
}

func TestTreeCannotBeWritten(t *testing.T) {
	f := newTreeFixture(t)
	over := f.listen(t)
	for _, config := range []*rest.Config{over, f.InProcess(identity.AdminUser, identity.MastersGroup)} {
		client := kubernetes.NewForConfigOrDie(config).CoreV1().RESTClient()
		for resource, hint := range map[string]string{api.Actors: "nodeactor restart PATH", api.FaultPolicies: "faultPolicies"} {
			for _, verb := range []string{http.MethodDelete, http.MethodPut, http.MethodPatch, http.MethodPost} {
				path := "/apis/" + api.GroupVersion.String() + "/" + resource
				if verb != http.MethodPost {
					path += "/node:scheduler"
				}
				err := client.Verb(verb).AbsPath(path).Body([]byte("{}")).Do(f.ctx).Error()
				status, _ := err.(*apierrors.StatusError)
				if status == nil || status.ErrStatus.Code != http.StatusMethodNotAllowed || !strings.Contains(err.Error(), hint) {
					t.Errorf("%s %s: got %v", verb, path, err)
				}
			}
		}
	}
	stranger := kubernetes.NewForConfigOrDie(f.InProcess("nobody")).CoreV1().RESTClient()
	if err := stranger.Delete().AbsPath("/apis/" + api.GroupVersion.String() + "/actors/node").Do(f.ctx).Error(); !apierrors.IsForbidden(err) {
		t.Errorf("a stranger got %v", err)
	}
}

func TestWhoMaySeeTheTree(t *testing.T) {
	f := newTreeFixture(t)
	list := func(user string, groups ...string) error {
		_, err := dynamic.NewForConfigOrDie(f.InProcess(user, groups...)).Resource(api.GroupVersion.WithResource(api.Actors)).List(f.ctx, metav1.ListOptions{})
		return err
	}
	if err := list("nobody"); !apierrors.IsForbidden(err) {
		t.Errorf("a stranger got %v", err)
	}
	eventually(t, f.ctx, func() error { return list("scraper", "system:monitoring") })
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "viewer"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "viewer"}},
	}
	if _, err := f.admin.RbacV1().ClusterRoleBindings().Create(f.ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, f.ctx, func() error { return list("viewer") })
}
