package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	coreapi "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/nodeactor/nodeactor/cluster/identity"
)

// kindsServed is what discovery has to say: group and version, resource, kind, N if it is namespaced, short names, categories, subresources.
const kindsServed = `
v1 pods Pod N po all status,log
v1 services Service N svc all status
v1 configmaps ConfigMap N cm - -
v1 secrets Secret N - - -
v1 namespaces Namespace - ns - status
v1 serviceaccounts ServiceAccount N sa - token
v1 nodes Node - no - status
v1 persistentvolumes PersistentVolume - pv - -
v1 persistentvolumeclaims PersistentVolumeClaim N pvc - status
v1 endpoints Endpoints N ep - -
v1 replicationcontrollers ReplicationController N rc all status,scale
v1 podtemplates PodTemplate N - - -
v1 limitranges LimitRange N limits - -
v1 resourcequotas ResourceQuota N quota - status
v1 events Event N ev - -
apps/v1 deployments Deployment N deploy all status,scale
apps/v1 replicasets ReplicaSet N rs all status,scale
apps/v1 statefulsets StatefulSet N sts all status,scale
apps/v1 daemonsets DaemonSet N ds all status
apps/v1 controllerrevisions ControllerRevision N - - -
batch/v1 jobs Job N - all status
batch/v1 cronjobs CronJob N cj all status
autoscaling/v2 horizontalpodautoscalers HorizontalPodAutoscaler N hpa all status
policy/v1 poddisruptionbudgets PodDisruptionBudget N pdb - status
networking.k8s.io/v1 ingresses Ingress N ing - -
networking.k8s.io/v1 ingressclasses IngressClass - - - -
networking.k8s.io/v1 networkpolicies NetworkPolicy N netpol - -
discovery.k8s.io/v1 endpointslices EndpointSlice N - - -
rbac.authorization.k8s.io/v1 roles Role N - - -
rbac.authorization.k8s.io/v1 clusterroles ClusterRole - - - -
rbac.authorization.k8s.io/v1 rolebindings RoleBinding N - - -
rbac.authorization.k8s.io/v1 clusterrolebindings ClusterRoleBinding - - - -
storage.k8s.io/v1 storageclasses StorageClass - sc - -
storage.k8s.io/v1 csinodes CSINode - - - -
storage.k8s.io/v1 csidrivers CSIDriver - - - -
storage.k8s.io/v1 volumeattachments VolumeAttachment - - - status
storage.k8s.io/v1 csistoragecapacities CSIStorageCapacity N - - -
node.k8s.io/v1 runtimeclasses RuntimeClass - - - -
scheduling.k8s.io/v1 priorityclasses PriorityClass - pc - -
coordination.k8s.io/v1 leases Lease N - - -
authentication.k8s.io/v1 tokenreviews TokenReview - - - -
authorization.k8s.io/v1 subjectaccessreviews SubjectAccessReview - - - -
authorization.k8s.io/v1 selfsubjectaccessreviews SelfSubjectAccessReview - - - -
authorization.k8s.io/v1 selfsubjectrulesreviews SelfSubjectRulesReview - - - -
authorization.k8s.io/v1 localsubjectaccessreviews LocalSubjectAccessReview N - - -
certificates.k8s.io/v1 certificatesigningrequests CertificateSigningRequest - csr - status
apiextensions.k8s.io/v1 customresourcedefinitions CustomResourceDefinition - crd,crds api-extensions -
admissionregistration.k8s.io/v1 mutatingwebhookconfigurations MutatingWebhookConfiguration - - api-extensions -
admissionregistration.k8s.io/v1 validatingwebhookconfigurations ValidatingWebhookConfiguration - - api-extensions -
flowcontrol.apiserver.k8s.io/v1 flowschemas FlowSchema - - - status
flowcontrol.apiserver.k8s.io/v1 prioritylevelconfigurations PriorityLevelConfiguration - - - status
`

// TestF004_KindsAreDiscovered holds all but APIService, which is not served.
func TestF004_KindsAreDiscovered(t *testing.T) {
	f := newFixture(t)
	_, lists, err := f.admin.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]metav1.APIResource{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			served[list.GroupVersion+" "+r.Name] = r
		}
	}
	lines := strings.Split(strings.TrimSpace(kindsServed), "\n")
	if len(lines) != 51 {
		t.Fatalf("%d kinds are looked for", len(lines))
	}
	for _, line := range lines {
		f := strings.Fields(line)
		r := served[f[0]+" "+f[1]]
		if r.Kind != f[2] || r.Namespaced != (f[3] == "N") || !slices.Equal(r.ShortNames, commas(f[4])) || !slices.Equal(r.Categories, commas(f[5])) {
			t.Errorf("%s is discovered as %+v", line, r)
		}
		for _, sub := range commas(f[6]) {
			if _, ok := served[f[0]+" "+f[1]+"/"+sub]; !ok {
				t.Errorf("%s has no %s", f[1], sub)
			}
		}
	}
}

// commas splits a list; a dash is none.
func commas(text string) []string {
	if text == "-" {
		return nil
	}
	return strings.Split(text, ",")
}

func TestF007_EveryGroupHasItsDocuments(t *testing.T) {
	f := newFixture(t)
	client := discovery.NewDiscoveryClientForConfigOrDie(f.listen(t))
	groups, err := client.ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	documents := 0
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			path := "apis/" + version.GroupVersion
			if group.Name == "" {
				path = "api/" + version.GroupVersion
			}
			documents++
			if paths[path] == nil {
				t.Errorf("%s has no v3 document", path)
				continue
			}
			data, err := paths[path].Schema("application/json")
			var document struct {
				Paths      map[string]json.RawMessage
				Components struct{ Schemas map[string]json.RawMessage }
			}
			if err == nil {
				err = json.Unmarshal(data, &document)
			}
			if err != nil || document.Paths["/"+path+"/"] == nil || len(document.Components.Schemas) == 0 {
				t.Errorf("the v3 document of %s: %v", path, err)
			}
		}
	}
	if documents < 20 {
		t.Errorf("only %d groups and versions were looked at", documents)
	}
}

// TestF008_PagesShowEveryObjectOnce reads pages over HTTP while others write.
func TestF008_PagesShowEveryObjectOnce(t *testing.T) {
	f := newFixture(t)
	maps := kubernetes.NewForConfigOrDie(f.listen(t)).CoreV1().ConfigMaps(f.namespace(t))
	make := func(name string) {
		t.Helper()
		if _, err := maps.Create(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	const objects = 30
	for i := range objects {
		make(fmt.Sprintf("m-%02d", i))
	}
	seen, revision := map[string]int{}, ""
	for options, page := (metav1.ListOptions{Limit: 4}), 0; ; page++ {
		list, err := maps.List(f.ctx, options)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list.Items {
			seen[m.Name]++
		}
		if revision == "" {
			revision = list.ResourceVersion
		}
		if list.ResourceVersion != revision {
			t.Errorf("page %d is of revision %s, the first of %s", page, list.ResourceVersion, revision)
		}
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
		// Before what was read, between, and behind; and one goes that was not read yet.
		make(fmt.Sprintf("a-%02d", page))
		make(fmt.Sprintf("m-%02d-more", 20+page))
		make(fmt.Sprintf("z-%02d", page))
		if err := maps.Delete(f.ctx, fmt.Sprintf("m-%02d", objects-1-page), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range objects {
		if n := seen[fmt.Sprintf("m-%02d", i)]; n != 1 {
			t.Errorf("object %d was seen %d times", i, n)
		}
	}
	if len(seen) != objects {
		t.Errorf("%d objects were seen, there were %d", len(seen), objects)
	}
}

// TestF009_AWatchGoesOnFromABookmark: what happens after a bookmark is told to who comes back with it, all of it; what was forgotten is 410.
func TestF009_AWatchGoesOnFromABookmark(t *testing.T) {
	f := newFixture(t)
	settle(t, f)
	maps := kubernetes.NewForConfigOrDie(f.listen(t)).CoreV1().ConfigMaps("default")
	seconds := int64(3)
	w, err := maps.Watch(f.ctx, metav1.ListOptions{ResourceVersion: fmt.Sprint(f.store.Revision()), AllowWatchBookmarks: true, TimeoutSeconds: &seconds})
	if err != nil {
		t.Fatal(err)
	}
	mark := ""
	for event := range w.ResultChan() {
		if event.Type == watch.Bookmark {
			mark = event.Object.(*corev1.ConfigMap).ResourceVersion
		}
	}
	if mark == "" {
		t.Fatal("no bookmark came")
	}
	const objects = 20
	for i := range objects {
		if _, err := maps.Create(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("later-%02d", i)}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if w, err = maps.Watch(f.ctx, metav1.ListOptions{ResourceVersion: mark}); err != nil {
		t.Fatal(err)
	}
	for i := range objects {
		if event := nextEvent(t, w); event.Type != watch.Added || event.Object.(*corev1.ConfigMap).Name != fmt.Sprintf("later-%02d", i) {
			t.Fatalf("event %d is %v", i, event)
		}
	}
	w.Stop()
	if err := f.store.CompactTo(f.ctx, f.store.Revision()); err != nil {
		t.Fatal(err)
	}
	if err := goneSince(f.ctx, maps.Watch, mark); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("a watch from a revision that was forgotten: %v", err)
	}
}

// goneSince is what a watch from a revision says first.
func goneSince(ctx context.Context, start func(context.Context, metav1.ListOptions) (watch.Interface, error), revision string) error {
	w, err := start(ctx, metav1.ListOptions{ResourceVersion: revision})
	if err != nil {
		return err
	}
	defer w.Stop()
	return apierrors.FromObject((<-w.ResultChan()).Object)
}

func nextEvent(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case event := <-w.ResultChan():
		return event
	case <-time.After(10 * time.Second):
		t.Fatal("no event")
	}
	return watch.Event{}
}

func TestF011_FieldsAreValidated(t *testing.T) {
	f := newFixture(t)
	config, warned := f.InProcess(identity.AdminUser, identity.MastersGroup), &warnings{}
	config.WarningHandler = warned
	client := kubernetes.NewForConfigOrDie(config).AppsV1().RESTClient()
	const manifest = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{%s"selector":{"matchLabels":{"a":"b"}},
		"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"x"}]}}}}`
	post := func(mode, field string) error {
		return client.Post().Namespace("default").Resource("deployments").Param("fieldValidation", mode).Param("dryRun", "All").
			SetHeader("Content-Type", "application/json").Body(fmt.Appendf(nil, manifest, field)).Do(f.ctx).Error()
	}
	const unknown, wrong = `"replicaz":3,`, `"replicas":"3",`
	if err := post("Strict", unknown); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), `unknown field "spec.replicaz"`) {
		t.Errorf("strict: %v", err)
	}
	if err := post("Warn", unknown); err != nil || len(warned.text) != 1 || !strings.Contains(warned.text[0], `unknown field "spec.replicaz"`) {
		t.Errorf("warn: %v, warned of %q", err, warned.text)
	}
	if err := post("Ignore", unknown); err != nil || len(warned.text) != 1 {
		t.Errorf("ignore: %v, warned of %q", err, warned.text)
	}
	for _, mode := range []string{"Strict", "Warn", "Ignore"} {
		if err := post(mode, wrong); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "int32") {
			t.Errorf("a string for a number, %s: %v", mode, err)
		}
	}
}

func TestF012_SubresourcesTouchTheirPartAlone(t *testing.T) {
	both(t, func(t *testing.T, f *fixture, client kubernetes.Interface) {
		ns := f.namespace(t)
		deployments := client.AppsV1().Deployments(ns)
		d, err := deployments.Create(f.ctx, deployment("d", "x"), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		three := int32(3)
		d.Spec.Replicas, d.Status.Replicas, d.Status.ObservedGeneration = &three, 7, 1
		if d, err = deployments.UpdateStatus(f.ctx, d, metav1.UpdateOptions{}); err != nil || *d.Spec.Replicas != 1 || d.Status.Replicas != 7 || d.Generation != 1 {
			t.Errorf("status: %+v, %v", d, err)
		}
		d.Spec.Replicas, d.Status.Replicas = &three, 9
		if d, err = deployments.Update(f.ctx, d, metav1.UpdateOptions{}); err != nil || *d.Spec.Replicas != 3 || d.Status.Replicas != 7 || d.Generation != 2 {
			t.Errorf("spec: %+v, %v", d, err)
		}
		scale, err := deployments.GetScale(f.ctx, "d", metav1.GetOptions{})
		if err != nil || scale.Spec.Replicas != 3 || scale.Status.Replicas != 7 {
			t.Fatalf("scale: %+v, %v", scale, err)
		}
		before := d
		scale.Spec.Replicas = 5
		if _, err = deployments.UpdateScale(f.ctx, "d", scale, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if d, err = deployments.Get(f.ctx, "d", metav1.GetOptions{}); err != nil || *d.Spec.Replicas != 5 {
			t.Fatalf("scaled: %+v, %v", d, err)
		}
		d.Spec.Replicas = before.Spec.Replicas
		if !equality.Semantic.DeepEqual(d.Spec, before.Spec) || !equality.Semantic.DeepEqual(d.Status, before.Status) {
			t.Errorf("the scale changed more: %+v", d)
		}
		resizes(t, f, client, ns)
	})
}

// resizes gives a pod another size, which only its subresource may do.
func resizes(t *testing.T, f *fixture, client kubernetes.Interface, namespace string) {
	t.Helper()
	pods := client.CoreV1().Pods(namespace)
	p := pod("sized")
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	p, err := pods.Create(f.ctx, p, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.Status.Phase = corev1.PodRunning
	if p, err = pods.UpdateStatus(f.ctx, p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
	p.Spec.Containers[0].Image = "another"
	got, err := pods.UpdateResize(f.ctx, "sized", p, metav1.UpdateOptions{})
	if err != nil || got.Spec.Containers[0].Resources.Requests.Cpu().Value() != 2 || got.Spec.Containers[0].Image == "another" {
		t.Errorf("resize: %+v, %v", got, err)
	}
}

func TestF013_TablesAndTheirWatches(t *testing.T) {
	f := newFixture(t)
	ns := f.namespace(t)
	if _, err := f.admin.CoreV1().Pods(ns).Create(f.ctx, pod("a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := "/api/v1/namespaces/" + ns + "/pods?includeObject="
	client := newRawClient(t, f.listen(t))
	for include, want := range map[string]string{"None": "", "Metadata": "PartialObjectMetadata", "Object": "Pod"} {
		var table metav1.Table
		if err := json.NewDecoder(client.open(f.ctx, t, pods+include, asJSON+tableAs)).Decode(&table); err != nil {
			t.Fatal(err)
		}
		seesPod(t, include, table, want)
		body := client.open(f.ctx, t, pods+include+"&watch=1", asJSON+tableAs)
		err := frames(body, asJSON, func(frame []byte) bool {
			var event struct {
				Type   string
				Object metav1.Table
			}
			if err := json.Unmarshal(frame, &event); err != nil || event.Type != "ADDED" {
				t.Fatalf("watch: %v %.300s", err, frame)
			}
			seesPod(t, "watch "+include, event.Object, want)
			return true
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// seesPod looks at a table of the one pod, whose row carries an object of a kind or none.
func seesPod(t *testing.T, what string, table metav1.Table, kind string) {
	t.Helper()
	if len(table.Rows) != 1 || len(table.ColumnDefinitions) < 5 || table.ColumnDefinitions[1].Name != "Ready" || table.Rows[0].Cells[0] != "a" || table.Rows[0].Cells[1] != "0/1" {
		t.Fatalf("%s: %+v", what, table)
	}
	var object metav1.TypeMeta
	if raw := table.Rows[0].Object.Raw; len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
		if err := json.Unmarshal(raw, &object); err != nil {
			t.Fatal(err)
		}
	}
	if object.Kind != kind {
		t.Errorf("%s: the row carries a %q, want %q", what, object.Kind, kind)
	}
}

// TestF014_SchemasAreHeldAndWebhooksCalled: the structural schema of a custom resource at creation and update, and webhooks of both sorts.
func TestF014_SchemasAreHeldAndWebhooksCalled(t *testing.T) {
	f := newFixture(t)
	client := define(t, f).Namespace("default")
	for what, spec := range map[string]map[string]any{"a string for a number": {"replicas": "many"}, "null": {"limit": nil, "replicas": []any{}}} {
		if _, err := client.Create(f.ctx, widget("wrong", spec), metav1.CreateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.replicas") {
			t.Errorf("%s: %v", what, err)
		}
	}
	w, err := client.Create(f.ctx, widget("w", map[string]any{"replicas": int64(2)}), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.Object["spec"].(map[string]any)["replicas"] = "many"
	if _, err := client.Update(f.ctx, w, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("an update to a string: %v", err)
	}
	f.hooks(t, "widgets")
	eventually(t, f.ctx, func() error {
		got, err := client.Create(f.ctx, widget("changed", map[string]any{}), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && got.GetLabels()["hooked"] != "yes" {
			err = fmt.Errorf("the label is not there: %v", got)
		}
		return err
	})
	eventually(t, f.ctx, func() error {
		_, err := client.Create(f.ctx, widget("bad", map[string]any{}), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "not that one") {
			return fmt.Errorf("the webhook did not refuse: %v", err)
		}
		return nil
	})
}

// hooks registers two webhooks for a custom resource, served on loopback: one that adds a label, one that refuses the name "bad".
func (f *fixture) hooks(t *testing.T, resource string) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(reviewWidget))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	none, fail, url := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Fail, server.URL+"/"
	to := admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: ca}
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{widgets.Group}, APIVersions: []string{"*"}, Resources: []string{resource}},
	}}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Webhooks: []admissionregistrationv1.MutatingWebhook{{
		Name: "m.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: &none, FailurePolicy: &fail, ClientConfig: to, Rules: rules,
	}}}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
		Name: "v.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: &none, FailurePolicy: &fail, ClientConfig: to, Rules: rules,
	}}}
	client := f.admin.AdmissionregistrationV1()
	if _, err := client.MutatingWebhookConfigurations().Create(f.ctx, mutating, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.ValidatingWebhookConfigurations().Create(f.ctx, validating, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// reviewWidget is both webhooks: the label is only added where it is not there yet, which is before the validation.
func reviewWidget(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: review.Request.Name != "bad", Result: &metav1.Status{Message: "not that one"}}
	if review.Request.Name != "bad" && !bytes.Contains(review.Request.Object.Raw, []byte(`"hooked"`)) {
		kind := admissionv1.PatchTypeJSONPatch
		answer.PatchType, answer.Patch = &kind, []byte(`[{"op":"add","path":"/metadata/labels","value":{"hooked":"yes"}}]`)
	}
	review.Response = answer
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// TestF016_TokensLastAnHour: a token that was asked for without a lifetime says so, and its twin of more than an hour ago is refused.
func TestF016_TokensLastAnHour(t *testing.T) {
	f := newFixture(t)
	network, ns := f.listen(t), f.namespace(t)
	began := time.Now()
	issued, err := f.admin.CoreV1().ServiceAccounts(ns).CreateToken(f.ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if life := issued.Status.ExpirationTimestamp.Sub(began); life < 59*time.Minute || life > 61*time.Minute {
		t.Errorf("the token is good for %v", life)
	}
	if err := f.reviews(network, issued.Status.Token); err != nil {
		t.Errorf("the token: %v", err)
	}
	account, err := f.admin.CoreV1().ServiceAccounts(ns).Get(f.ctx, "default", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for age, good := range map[int64]bool{59 * 60: true, 61 * 60: false} {
		owner := coreapi.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "default", UID: account.UID}}
		claims, private, err := serviceaccount.Claims(owner, nil, nil, nil, nil, nil, 3600, 0, []string{issuer}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []*int64{(*int64)(claims.IssuedAt), (*int64)(claims.NotBefore), (*int64)(claims.Expiry)} {
			*at -= age
		}
		token, err := f.credentials.tokens.GenerateToken(f.ctx, claims, private)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.reviews(network, token); (err == nil) != good || !good && !apierrors.IsUnauthorized(err) {
			t.Errorf("a token of %d s ago: %v", age, err)
		}
	}
}

// reviews asks the API who a token is.
func (f *fixture) reviews(network *rest.Config, token string) error {
	client := kubernetes.NewForConfigOrDie(as(network, token))
	_, err := client.AuthenticationV1().SelfSubjectReviews().Create(f.ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	return err
}
