package apiserver

import (
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/nodeactor/nodeactor/cluster/identity"
)

// warnings collects what a client is warned of.
type warnings struct {
	mu   sync.Mutex
	text []string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, text)
}

func TestKindsWithoutEffectWarn(t *testing.T) {
	f := newFixtureIn(t, t.TempDir(), Config{WithoutEffect: map[schema.GroupResource]string{{Resource: "podtemplates"}: "nobody looks"}})
	config, got := f.InProcess(identity.AdminUser, identity.MastersGroup), &warnings{}
	config.WarningHandler = got
	client := kubernetes.NewForConfigOrDie(config)
	cidr := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "more"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.97.0.0/16"}}}
	if _, err := client.NetworkingV1().ServiceCIDRs().Create(f.ctx, cidr, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	template := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: "t"}, Template: corev1.PodTemplateSpec{Spec: pod("x").Spec}}
	if _, err := client.CoreV1().PodTemplates("default").Create(f.ctx, template, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(got.text) != 2 || !strings.Contains(got.text[0], "servicecidrs: stored without effect") || got.text[1] != "podtemplates: nobody looks" {
		t.Errorf("got %q", got.text)
	}
}
