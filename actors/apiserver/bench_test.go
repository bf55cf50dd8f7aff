package apiserver

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func benchPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "bench", "pod-template-hash": "abc"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "bench", UID: "9b7f1a6e-0000-4000-8000-000000000000"}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Image: "example.com/app:1", Env: []corev1.EnvVar{{Name: "A", Value: "b"}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}},
		}}},
	}
}

func benchmarkCreate(b *testing.B, bind bool) {
	f := newFixture(b)
	if _, err := f.admin.CoreV1().ServiceAccounts("default").Create(f.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	pods := f.admin.CoreV1().Pods("default")
	var next atomic.Int64
	b.ResetTimer()
	start := cpu()
	defer func() { b.ReportMetric(float64((cpu()-start).Microseconds())/float64(b.N), "cpu-us/op") }()
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for {
				i := next.Add(1)
				if i > int64(b.N) {
					return
				}
				name := fmt.Sprintf("p%d", i)
				if _, err := pods.Create(f.ctx, benchPod(name), metav1.CreateOptions{}); err != nil {
					b.Error(err)
					return
				}
				if !bind {
					continue
				}
				err := pods.Bind(f.ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name}, Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}, metav1.CreateOptions{})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
}

func BenchmarkCreatePod(b *testing.B)        { benchmarkCreate(b, false) }
func BenchmarkCreateAndBindPod(b *testing.B) { benchmarkCreate(b, true) }

func BenchmarkGetOverTLS(b *testing.B) {
	f := newFixture(b)
	client := kubernetes.NewForConfigOrDie(f.listen(b))
	b.ResetTimer()
	start := cpu()
	for range b.N {
		if _, err := client.CoreV1().Namespaces().Get(f.ctx, "default", metav1.GetOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cpu()-start).Microseconds())/float64(b.N), "cpu-us/op")
}
