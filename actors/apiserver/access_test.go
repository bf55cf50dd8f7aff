package apiserver

import (
	"io"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/nodeactor/nodeactor/cluster/identity"
)

func TestRBACDecides(t *testing.T) {
	f := newFixture(t)
	ns := f.namespace(t)
	bob := kubernetes.NewForConfigOrDie(f.InProcess("bob"))
	if _, err := bob.CoreV1().ConfigMaps(ns).List(f.ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), `User "bob" cannot list resource "configmaps" in API group "" in the namespace "`+ns+`"`) {
		t.Fatalf("got %v", err)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}}}
	if _, err := f.admin.RbacV1().Roles(ns).Create(f.ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "bob"}}}
	if _, err := f.admin.RbacV1().RoleBindings(ns).Create(f.ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, f.ctx, func() error {
		_, err := bob.CoreV1().ConfigMaps(ns).List(f.ctx, metav1.ListOptions{})
		return err
	})
	for verb, want := range map[string]bool{"list": true, "delete": false} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: ns, Verb: verb, Resource: "configmaps"},
		}}
		got, err := bob.AuthorizationV1().SelfSubjectAccessReviews().Create(f.ctx, review, metav1.CreateOptions{})
		if err != nil || got.Status.Allowed != want {
			t.Errorf("can-i %s: %+v, %v", verb, got, err)
		}
	}
	escalation := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "e"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}}
	if _, err := bob.RbacV1().Roles(ns).Create(f.ctx, escalation, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
}

func TestAggregatedRolesAreFilled(t *testing.T) {
	f := newFixture(t)
	eventually(t, f.ctx, func() error {
		for _, name := range []string{"admin", "edit", "view"} {
			role, err := f.admin.RbacV1().ClusterRoles().Get(f.ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if len(role.Rules) == 0 {
				return apierrors.NewNotFound(rbacv1.Resource("rules"), name)
			}
		}
		return nil
	})
}

func TestServiceAccountToken(t *testing.T) {
	f := newFixture(t)
	network := f.listen(t)
	ns := f.namespace(t)
	p, err := f.admin.CoreV1().Pods(ns).Create(f.ctx, pod("p"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID},
	}}
	issued, err := f.admin.CoreV1().ServiceAccounts(ns).CreateToken(f.ctx, "default", request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(as(network, issued.Status.Token))
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(f.ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil || review.Status.UserInfo.Username != "system:serviceaccount:"+ns+":default" {
		t.Fatalf("got %+v, %v", review, err)
	}
	if extra := review.Status.UserInfo.Extra["authentication.kubernetes.io/pod-name"]; len(extra) != 1 || extra[0] != "p" {
		t.Errorf("got %v", review.Status.UserInfo.Extra)
	}
	if _, err := client.CoreV1().Secrets(ns).List(f.ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
	now := int64(0)
	if err := f.admin.CoreV1().Pods(ns).Delete(f.ctx, "p", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	checked, err := f.admin.AuthenticationV1().TokenReviews().Create(f.ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: issued.Status.Token}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_ = checked // the verdict may still be the cached one
	if _, err := kubernetes.NewForConfigOrDie(as(network, issued.Status.Token+"x")).CoreV1().Pods(ns).List(f.ctx, metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("a forged token gave %v", err)
	}
}

func TestAnonymousSeesOnlyHealthAndVersion(t *testing.T) {
	health := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	f := newFixtureIn(t, t.TempDir(), Config{Health: health})
	anonymous := kubernetes.NewForConfigOrDie(as(f.listen(t), ""))
	for _, path := range []string{"/livez", "/readyz", "/healthz", "/version"} {
		eventually(t, f.ctx, func() error { return anonymous.RESTClient().Get().AbsPath(path).Do(f.ctx).Error() })
	}
	for _, path := range []string{"/api", "/apis", "/metrics", "/openapi/v3", "/api/v1/namespaces"} {
		if err := anonymous.RESTClient().Get().AbsPath(path).Do(f.ctx).Error(); !apierrors.IsForbidden(err) {
			t.Errorf("%s gave %v", path, err)
		}
	}
}

func TestNodeSeesOnlyWhatItsPodsUse(t *testing.T) {
	f := newFixture(t)
	ns := f.namespace(t)
	for _, name := range []string{"used", "other"} {
		if _, err := f.admin.CoreV1().Secrets(ns).Create(f.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	p := pod("p")
	p.Spec.NodeName = "n"
	p.Spec.Volumes = []corev1.Volume{{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "used"}}}}
	if _, err := f.admin.CoreV1().Pods(ns).Create(f.ctx, p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	node := kubernetes.NewForConfigOrDie(f.InProcess(identity.NodeUserPrefix+"n", identity.NodesGroup))
	eventually(t, f.ctx, func() error {
		_, err := node.CoreV1().Secrets(ns).Get(f.ctx, "used", metav1.GetOptions{})
		return err
	})
	if _, err := node.CoreV1().Secrets(ns).Get(f.ctx, "other", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
	if _, err := node.CoreV1().Nodes().Create(f.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a node created another node: %v", err)
	}
	if _, err := node.CoreV1().Nodes().Create(f.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{}); err != nil {
		t.Errorf("a node could not create itself: %v", err)
	}
	token := &authenticationv1.TokenRequest{}
	if _, err := node.CoreV1().ServiceAccounts(ns).CreateToken(f.ctx, "default", token, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a node got a token that is not bound to a pod of its own: %v", err)
	}
}

func TestIssuerIsDescribedToServiceAccounts(t *testing.T) {
	f := newFixture(t)
	pods := kubernetes.NewForConfigOrDie(f.InProcess("system:serviceaccount:default:default", "system:serviceaccounts"))
	for path, want := range map[string]string{"/.well-known/openid-configuration": issuer, "/openid/v1/jwks": `"alg":"ES256"`} {
		eventually(t, f.ctx, func() error {
			got, err := pods.RESTClient().Get().AbsPath(path).SetHeader("Accept", "*/*").DoRaw(f.ctx)
			if err == nil && !strings.Contains(string(got), want) {
				t.Fatalf("%s says %s", path, got)
			}
			return err
		})
	}
}

func TestImpersonation(t *testing.T) {
	f := newFixture(t)
	config := rest.CopyConfig(f.listen(t))
	config.Impersonate = rest.ImpersonationConfig{UserName: "bob"}
	if _, err := kubernetes.NewForConfigOrDie(config).CoreV1().Pods("default").List(f.ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
}
