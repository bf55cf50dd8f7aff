package apiserver

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// both runs the test in process and over TLS.
func both(t *testing.T, test func(t *testing.T, f *fixture, client kubernetes.Interface)) {
	f := newFixture(t)
	network := kubernetes.NewForConfigOrDie(f.listen(t))
	t.Run("in process", func(t *testing.T) { test(t, f, f.admin) })
	t.Run("over TLS", func(t *testing.T) { test(t, f, network) })
}

// namespace makes a namespace with its default ServiceAccount, which a controller would make.
func (f *fixture) namespace(t testing.TB) string {
	t.Helper()
	ns, err := f.admin.CoreV1().Namespaces().Create(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f.account(t, ns.Name, "default")
	return ns.Name
}

func (f *fixture) account(t testing.TB, namespace, name string) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := f.admin.CoreV1().ServiceAccounts(namespace).Create(f.ctx, account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "x"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/x:1"}}},
	}
}

func TestCreateGetListUpdateDelete(t *testing.T) {
	both(t, func(t *testing.T, f *fixture, client kubernetes.Interface) {
		pods := client.CoreV1().Pods(f.namespace(t))
		created, err := pods.Create(f.ctx, pod("a"), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if created.Spec.ServiceAccountName != "default" || created.Status.QOSClass != corev1.PodQOSBestEffort || len(created.Spec.Tolerations) != 2 || created.Spec.Priority == nil {
			t.Errorf("defaults and admission are missing: %+v", created)
		}
		if len(created.Spec.Volumes) != 1 || created.Spec.Volumes[0].Projected == nil {
			t.Errorf("no projected token volume: %+v", created.Spec.Volumes)
		}
		got, err := pods.Get(f.ctx, "a", metav1.GetOptions{})
		if err != nil || got.UID != created.UID {
			t.Fatalf("got %v, %v", got, err)
		}
		if err := pods.Bind(f.ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		list, err := pods.List(f.ctx, metav1.ListOptions{LabelSelector: "app=x", FieldSelector: "spec.nodeName=n"})
		if err != nil || len(list.Items) != 1 {
			t.Fatalf("got %v, %v", list, err)
		}
		bound := list.Items[0]
		bound.Status.Phase = corev1.PodRunning
		if _, err := pods.UpdateStatus(f.ctx, &bound, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := pods.UpdateStatus(f.ctx, got, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			t.Errorf("an outdated update gave %v", err)
		}
		now := int64(0)
		if err := pods.Delete(f.ctx, "a", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			t.Fatal(err)
		}
		if _, err := pods.Get(f.ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("a deleted pod gave %v", err)
		}
	})
}

func TestWatchSeesEveryChange(t *testing.T) {
	both(t, func(t *testing.T, f *fixture, client kubernetes.Interface) {
		maps := client.CoreV1().ConfigMaps(f.namespace(t))
		w, err := maps.Watch(f.ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		created, err := maps.Create(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		created.Data = map[string]string{"k": "v"}
		if _, err := maps.Update(f.ctx, created, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := maps.Delete(f.ctx, "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
			select {
			case event := <-w.ResultChan():
				if event.Type != want {
					t.Fatalf("got %v, want %v", event, want)
				}
			case <-time.After(5 * time.Second):
				t.Fatalf("no %s event", want)
			}
		}
	})
}

func TestWatchEndsWithItsContext(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(f.ctx)
	w, err := f.admin.CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	for deadline := time.After(5 * time.Second); ; {
		select {
		case _, open := <-w.ResultChan():
			if !open {
				return
			}
		case <-deadline:
			t.Fatal("the watch goes on")
		}
	}
}

func deployment(name, image string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}},
			},
		},
	}
}

func TestServerSideApplyConflict(t *testing.T) {
	both(t, func(t *testing.T, f *fixture, client kubernetes.Interface) {
		deployments := client.AppsV1().Deployments(f.namespace(t))
		manifest := func(replicas int) []byte {
			return fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":%d,"selector":{"matchLabels":{"a":"b"}},
				"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"x"}]}}}}`, replicas)
		}
		if _, err := deployments.Patch(f.ctx, "d", types.ApplyPatchType, manifest(1), metav1.PatchOptions{FieldManager: "one"}); err != nil {
			t.Fatal(err)
		}
		_, err := deployments.Patch(f.ctx, "d", types.ApplyPatchType, manifest(2), metav1.PatchOptions{FieldManager: "two"})
		if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "one": .spec.replicas`) {
			t.Fatalf("got %v", err)
		}
		force := true
		got, err := deployments.Patch(f.ctx, "d", types.ApplyPatchType, manifest(2), metav1.PatchOptions{FieldManager: "two", Force: &force})
		if err != nil || *got.Spec.Replicas != 2 {
			t.Fatalf("got %v, %v", got, err)
		}
		if got, err = deployments.Patch(f.ctx, "d", types.StrategicMergePatchType, []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"y"}]}}}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if len(got.Spec.Template.Spec.Containers) != 1 || got.Spec.Template.Spec.Containers[0].Image != "y" || got.Generation != 3 {
			t.Errorf("got generation %d, %+v", got.Generation, got.Spec.Template.Spec.Containers)
		}
	})
}

func TestScaleTouchesOnlyReplicas(t *testing.T) {
	both(t, func(t *testing.T, f *fixture, client kubernetes.Interface) {
		deployments := client.AppsV1().Deployments(f.namespace(t))
		if _, err := deployments.Create(f.ctx, deployment("d", "x"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		scale, err := deployments.GetScale(f.ctx, "d", metav1.GetOptions{})
		if err != nil || scale.Spec.Replicas != 1 || scale.Status.Selector != "app=d" {
			t.Fatalf("got %+v, %v", scale, err)
		}
		scale.Spec.Replicas = 5
		if _, err := deployments.UpdateScale(f.ctx, "d", scale, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		got, err := deployments.Get(f.ctx, "d", metav1.GetOptions{})
		if err != nil || *got.Spec.Replicas != 5 || got.Spec.Template.Spec.Containers[0].Image != "x" {
			t.Errorf("got %+v, %v", got.Spec, err)
		}
	})
}

func TestValidationSaysWhatUpstreamSays(t *testing.T) {
	f := newFixture(t)
	p := pod("a")
	p.Spec.Containers[0].Name = "Not_Valid"
	p.Spec.RestartPolicy = "Sometimes"
	_, err := f.admin.CoreV1().Pods(f.namespace(t)).Create(f.ctx, p, metav1.CreateOptions{})
	const want = `Pod "a" is invalid: [spec.containers[0].name: Invalid value: "Not_Valid": a lowercase RFC 1123 label must consist of lower case alphanumeric ` +
		`characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is ` +
		`'[a-z0-9]([-a-z0-9]*[a-z0-9])?'), spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"]`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestStrictFieldValidation(t *testing.T) {
	f := newFixture(t)
	body := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"dada":{}}`)
	post := func(mode string) error {
		return f.admin.CoreV1().RESTClient().Post().Namespace("default").Resource("configmaps").Param("fieldValidation", mode).
			SetHeader("Content-Type", "application/json").Body(body).Do(f.ctx).Error()
	}
	if err := post("Strict"); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), `unknown field "dada"`) {
		t.Errorf("got %v", err)
	}
	if err := post("Warn"); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestDryRunChangesNothing(t *testing.T) {
	both(t, func(t *testing.T, f *fixture, client kubernetes.Interface) {
		maps := client.CoreV1().ConfigMaps(f.namespace(t))
		got, err := maps.Create(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil || got.UID == "" {
			t.Fatalf("got %v, %v", got, err)
		}
		if _, err := maps.Get(f.ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("got %v", err)
		}
	})
}

func TestDeleteCollectionBySelector(t *testing.T) {
	both(t, func(t *testing.T, f *fixture, client kubernetes.Interface) {
		maps := client.CoreV1().ConfigMaps(f.namespace(t))
		for i := range 10 {
			m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("m", i), Labels: map[string]string{"odd": fmt.Sprint(i%2 == 1)}}}
			if _, err := maps.Create(f.ctx, m, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := maps.DeleteCollection(f.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "odd=true"}); err != nil {
			t.Fatal(err)
		}
		left, err := maps.List(f.ctx, metav1.ListOptions{})
		if err != nil || len(left.Items) != 5 {
			t.Errorf("%d are left, %v", len(left.Items), err)
		}
	})
}

func TestListInPages(t *testing.T) {
	both(t, func(t *testing.T, f *fixture, client kubernetes.Interface) {
		maps := client.CoreV1().ConfigMaps(f.namespace(t))
		for i := range 10 {
			if _, err := maps.Create(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("m", i)}}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		seen, pages := map[string]bool{}, 0
		for options := (metav1.ListOptions{Limit: 3}); ; pages++ {
			page, err := maps.List(f.ctx, options)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range page.Items {
				seen[m.Name] = true
			}
			if options.Continue = page.Continue; options.Continue == "" {
				break
			}
		}
		if len(seen) != 10 || pages != 3 {
			t.Errorf("%d objects in %d pages and one", len(seen), pages)
		}
	})
}

func TestTable(t *testing.T) {
	f := newFixture(t)
	ns := f.namespace(t)
	if _, err := f.admin.CoreV1().Pods(ns).Create(f.ctx, pod("a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	err := f.admin.CoreV1().RESTClient().Get().Namespace(ns).Resource("pods").Param("includeObject", "None").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(f.ctx).Into(&table)
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 1 || table.ColumnDefinitions[1].Name != "Ready" || table.Rows[0].Cells[1] != "0/1" || table.Rows[0].Cells[2] != "Pending" || table.Rows[0].Object.Raw != nil {
		t.Errorf("got %+v", table)
	}
}

func TestPodSubresources(t *testing.T) {
	f := newFixture(t)
	ns := f.namespace(t)
	pods := f.admin.CoreV1().Pods(ns)
	if _, err := pods.Create(f.ctx, pod("a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p, err := pods.Get(f.ctx, "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "d", ImagePullPolicy: "Always", TerminationMessagePolicy: "File"}}}
	if _, err = pods.UpdateEphemeralContainers(f.ctx, "a", p, metav1.UpdateOptions{}); err != nil {
		t.Errorf("ephemeral container: %v", err)
	}
	if err = pods.EvictV1(f.ctx, evictionOf("a")); err != nil {
		t.Errorf("eviction: %v", err)
	}
	if _, err = pods.Get(f.ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after eviction of an unbound pod: %v", err)
	}
	sized := pod("b")
	sized.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	if sized, err = pods.Create(f.ctx, sized, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	sized.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
	if _, err := pods.Update(f.ctx, sized, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a pod's size changed outside of resize: %v", err)
	}
}

func evictionOf(name string) *policyv1.Eviction {
	return &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
