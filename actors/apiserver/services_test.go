package apiserver

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func service(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
}

func TestClusterIPsAreUniqueAndRunOut(t *testing.T) {
	f := newFixtureIn(t, t.TempDir(), Config{ServiceCIDR: "10.99.0.0/27"}) // 30 addresses, one of them reserved
	services := f.admin.CoreV1().Services("default")
	var mu sync.Mutex
	var failed []error
	taken := map[string]string{"10.99.0.1": "kubernetes"}
	var workers sync.WaitGroup
	for i := range 40 {
		workers.Go(func() {
			svc, err := services.Create(f.ctx, service(fmt.Sprint("s", i)), metav1.CreateOptions{})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = append(failed, err)
				return
			}
			if _, pool, _ := net.ParseCIDR("10.99.0.0/27"); !pool.Contains(net.ParseIP(svc.Spec.ClusterIP)) {
				t.Errorf("%s has %s", svc.Name, svc.Spec.ClusterIP)
			}
			if other, dup := taken[svc.Spec.ClusterIP]; dup {
				t.Errorf("%s and %s both have %s", svc.Name, other, svc.Spec.ClusterIP)
			}
			taken[svc.Spec.ClusterIP] = svc.Name
		})
	}
	workers.Wait()
	if len(taken) != 30 || len(failed) != 11 {
		t.Fatalf("%d addresses are taken and %d services were refused", len(taken), len(failed))
	}
	if !strings.Contains(failed[0].Error(), "failed to allocate a serviceIP") || !strings.Contains(failed[0].Error(), "range is full") {
		t.Errorf("got %v", failed[0])
	}
	for ip, name := range taken {
		if name == "kubernetes" {
			continue
		}
		if err := services.Delete(f.ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		again, err := services.Create(f.ctx, service("again"), metav1.CreateOptions{})
		if err != nil || again.Spec.ClusterIP != ip {
			t.Errorf("the freed address %s was not given out: %v, %v", ip, again.Spec.ClusterIP, err)
		}
		break
	}
}

func TestFirstAddressIsReserved(t *testing.T) {
	f := newFixture(t)
	svc := service("thief")
	svc.Spec.ClusterIP = f.allocators.reserved.String()
	if _, err := f.admin.CoreV1().Services("default").Create(f.ctx, svc, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "already allocated") {
		t.Errorf("got %v", err)
	}
	kubernetes := f.admin.CoreV1().Services("default")
	if err := kubernetes.Delete(f.ctx, "kubernetes", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := f.Bootstrap(f.ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := kubernetes.Get(f.ctx, "kubernetes", metav1.GetOptions{}); err != nil || got.Spec.ClusterIP != "10.96.0.1" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestAllocationsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	var ip string
	var port int32
	t.Run("before", func(t *testing.T) {
		f := newFixtureIn(t, dir, Config{})
		svc := service("a")
		svc.Spec.Type = corev1.ServiceTypeNodePort
		svc, err := f.admin.CoreV1().Services("default").Create(f.ctx, svc, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ip, port = svc.Spec.ClusterIP, svc.Spec.Ports[0].NodePort
		if port < firstNodePort || port >= firstNodePort+nodePorts {
			t.Errorf("node port %d", port)
		}
	})
	t.Run("after", func(t *testing.T) {
		f := newFixtureIn(t, dir, Config{})
		for _, allocator := range f.allocators.addresses {
			if !allocator.Has(net.ParseIP(ip)) {
				t.Errorf("%s is free again", ip)
			}
		}
		if !f.allocators.ports.Has(int(port)) {
			t.Errorf("%d is free again", port)
		}
	})
}

func TestBadServiceCIDRIsRefused(t *testing.T) {
	for _, cidr := range []string{"nonsense", "10.0.0.0", "10.0.0.0/32"} {
		if _, err := newServiceAllocators(cidr); err == nil || !strings.Contains(err.Error(), cidr) {
			t.Errorf("%s gave %v", cidr, err)
		}
	}
}
