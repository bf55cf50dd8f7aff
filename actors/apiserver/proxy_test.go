package apiserver

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeactor/nodeactor/cluster/identity"
)

// address splits the address of a test server.
func address(t *testing.T, server *httptest.Server) (host string, port int32) {
	t.Helper()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	host, text, err := net.SplitHostPort(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return host, int32(number)
}

// kubelet stands for the kubelet of the node n, which runs the pod p of the namespace. It answers only the API server.
func (f *fixture) kubelet(t *testing.T, namespace string, h http.HandlerFunc) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, _, err := f.id.VerifyClient(r.TLS.PeerCertificates); err != nil || user != identity.KubeletClientUser {
			http.Error(w, fmt.Sprint(user, err), http.StatusUnauthorized)
			return
		}
		h(w, r)
	}))
	server.Listener.Close()
	own := ownAddress(t)
	config, err := f.id.KubeletServing("n", identity.KubeletHosts("n", net.ParseIP(own)))
	if err != nil {
		t.Fatal(err)
	}
	if server.Listener, err = tls.Listen("tcp", own+":0", config); err != nil {
		t.Fatal(err)
	}
	server.Start()
	server.URL = strings.Replace(server.URL, "http://", "https://", 1)
	t.Cleanup(server.Close)
	host, port := address(t, server)
	node, err := f.admin.CoreV1().Nodes().Create(f.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = port
	if _, err := f.admin.CoreV1().Nodes().UpdateStatus(f.ctx, node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	p := pod("p")
	p.Spec.NodeName = "n"
	if _, err := f.admin.CoreV1().Pods(namespace).Create(f.ctx, p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestLogsAndNodeProxyReachTheKubelet(t *testing.T) {
	f := newFixture(t)
	ns := f.namespace(t)
	f.kubelet(t, ns, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.RequestURI()) })
	for _, follow := range []bool{false, true} {
		got, err := f.admin.CoreV1().Pods(ns).GetLogs("p", &corev1.PodLogOptions{Container: "c", Follow: follow}).DoRaw(f.ctx)
		if err != nil || !strings.HasPrefix(string(got), "/containerLogs/"+ns+"/p/c") {
			t.Errorf("follow=%v: got %s, %v", follow, got, err)
		}
	}
	got, err := f.admin.CoreV1().RESTClient().Get().Resource("nodes").Name("n").SubResource("proxy").Suffix("stats", "summary").DoRaw(f.ctx)
	if err != nil || string(got) != "/stats/summary" {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestServiceProxyReachesAnEndpoint(t *testing.T) {
	f := newFixture(t)
	ns := f.namespace(t)
	f.backend(t, ns, "web", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello from "+r.URL.Path) }), false)
	got, err := f.admin.CoreV1().Services(ns).ProxyGet("http", "web", "80", "/x", nil).DoRaw(f.ctx)
	if err != nil || string(got) != "hello from /x" {
		t.Errorf("got %s, %v", got, err)
	}
}

// ownAddress returns an address of this machine that an endpoint may have: loopback ones are refused.
func ownAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	t.Skip("this machine has no address but loopback ones, and an endpoint cannot have those")
	return ""
}

// backend serves h as the only endpoint of a Service, and returns the certificate it shows if it is to use TLS.
func (f *fixture) backend(t *testing.T, namespace, name string, h http.Handler, withTLS bool) (ca []byte) {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Listener.Close()
	var err error
	if server.Listener, err = net.Listen("tcp", ownAddress(t)+":0"); err != nil {
		t.Fatal(err)
	}
	if withTLS {
		own, err := identity.Load(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		config, err := own.ServerTLS(identity.Hosts{Names: []string{name + "." + namespace + ".svc"}})
		if err != nil {
			t.Fatal(err)
		}
		server.Listener, ca = tls.NewListener(server.Listener, config), own.CAPEM()
	}
	server.Start()
	t.Cleanup(server.Close)
	host, port := address(t, server)
	svc := service(name)
	svc.Spec.Ports = []corev1.ServicePort{{Name: "p", Port: 80}, {Name: "s", Port: 443}}
	if _, err := f.admin.CoreV1().Services(namespace).Create(f.ctx, svc, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	plain, secure := "p", "s"
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{host}, TargetRef: f.podAt(t, namespace, name, host)}},
		Ports:       []discoveryv1.EndpointPort{{Name: &plain, Port: &port}, {Name: &secure, Port: &port}},
	}
	if _, err := f.admin.DiscoveryV1().EndpointSlices(namespace).Create(f.ctx, slice, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return ca
}

// podAt makes a pod that claims the address, and returns a reference to it.
func (f *fixture) podAt(t *testing.T, namespace, name, address string) *corev1.ObjectReference {
	t.Helper()
	p, err := f.admin.CoreV1().Pods(namespace).Create(f.ctx, pod(name), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.Status.PodIP, p.Status.PodIPs = address, []corev1.PodIP{{IP: address}}
	if _, err := f.admin.CoreV1().Pods(namespace).UpdateStatus(f.ctx, p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: name, UID: p.UID}
}

func TestWebhookBehindAService(t *testing.T) {
	f := newFixture(t)
	ns := f.namespace(t)
	hook := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: review.Request.Name != "bad", Result: &metav1.Status{Message: "not that one"}}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	})
	ca := f.backend(t, ns, "hook", hook, true)
	path, none, fail := "/", admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Fail
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hook"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "hook.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: &none, FailurePolicy: &fail,
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				CABundle: ca, Service: &admissionregistrationv1.ServiceReference{Namespace: ns, Name: "hook", Path: &path},
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}
	if _, err := f.admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(f.ctx, config, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, f.ctx, func() error {
		_, err := f.admin.CoreV1().ConfigMaps(ns).Create(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "bad"}}, metav1.CreateOptions{DryRun: []string{"All"}})
		if err != nil && strings.Contains(err.Error(), `admission webhook "hook.example.com" denied the request: not that one`) {
			return nil
		}
		return fmt.Errorf("the webhook did not refuse: %w", apierrors.NewBadRequest(fmt.Sprint(err)))
	})
	if _, err := f.admin.CoreV1().ConfigMaps(ns).Create(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "good"}}, metav1.CreateOptions{}); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestValidatingAdmissionPolicy(t *testing.T) {
	f := newFixture(t)
	ns := f.namespace(t)
	policies := f.admin.AdmissionregistrationV1()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "few"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: "object.spec.replicas <= 2", Message: "at most two"}},
		},
	}
	if _, err := policies.ValidatingAdmissionPolicies().Create(f.ctx, policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "few"},
		Spec:       admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: "few", ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}},
	}
	if _, err := policies.ValidatingAdmissionPolicyBindings().Create(f.ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	many := deployment("d", "x")
	three := int32(3)
	many.Spec.Replicas = &three
	eventually(t, f.ctx, func() error {
		_, err := f.admin.AppsV1().Deployments(ns).Create(f.ctx, many, metav1.CreateOptions{DryRun: []string{"All"}})
		if err != nil && strings.Contains(err.Error(), "at most two") {
			return nil
		}
		return fmt.Errorf("the policy did not refuse: %w", apierrors.NewBadRequest(fmt.Sprint(err)))
	})
}

func TestQuotaAndLimits(t *testing.T) {
	f := newFixture(t)
	ns := f.namespace(t)
	limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "l"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{corev1.ResourceMemory: *mebibytes(64)},
	}}}}
	if _, err := f.admin.CoreV1().LimitRanges(ns).Create(f.ctx, limits, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, f.ctx, func() error {
		got, err := f.admin.CoreV1().Pods(ns).Create(f.ctx, pod("p"), metav1.CreateOptions{DryRun: []string{"All"}})
		if err == nil && got.Spec.Containers[0].Resources.Limits.Memory().Cmp(*mebibytes(64)) != 0 {
			err = apierrors.NewBadRequest("no default limit")
		}
		return err
	})
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/configmaps": *count(0)}}}
	created, err := f.admin.CoreV1().ResourceQuotas(ns).Create(f.ctx, quota, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	created.Status.Hard, created.Status.Used = created.Spec.Hard, corev1.ResourceList{"count/configmaps": *count(0)}
	if _, err := f.admin.CoreV1().ResourceQuotas(ns).UpdateStatus(f.ctx, created, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, f.ctx, func() error {
		_, err := f.admin.CoreV1().ConfigMaps(ns).Create(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "c-"}}, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota") {
			return nil
		}
		return fmt.Errorf("the quota did not refuse: %w", apierrors.NewBadRequest(fmt.Sprint(err)))
	})
}

func TestPodSecurity(t *testing.T) {
	f := newFixture(t)
	ns := f.namespace(t)
	got, err := f.admin.CoreV1().Namespaces().Get(f.ctx, ns, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	if _, err := f.admin.CoreV1().Namespaces().Update(f.ctx, got, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, f.ctx, func() error {
		_, err := f.admin.CoreV1().Pods(ns).Create(f.ctx, pod("p"), metav1.CreateOptions{DryRun: []string{"All"}})
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), `violates PodSecurity "restricted:latest"`) {
			return nil
		}
		return fmt.Errorf("pod security did not refuse: %w", apierrors.NewBadRequest(fmt.Sprint(err)))
	})
}

func TestTerminatingNamespaceTakesNothingNew(t *testing.T) {
	f := newFixture(t)
	ns := f.namespace(t)
	if err := f.admin.CoreV1().Namespaces().Delete(f.ctx, ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, f.ctx, func() error {
		_, err := f.admin.CoreV1().ConfigMaps(ns).Create(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "c-"}}, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "because it is being terminated") {
			return nil
		}
		return fmt.Errorf("the namespace took an object: %w", apierrors.NewBadRequest(fmt.Sprint(err)))
	})
}

func mebibytes(n int64) *resource.Quantity {
	return resource.NewQuantity(n<<20, resource.BinarySI)
}

func count(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.DecimalSI) }
