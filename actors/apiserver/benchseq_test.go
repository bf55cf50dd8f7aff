package apiserver

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// createConfigMaps creates objects of one kilobyte, one after the other.
func createConfigMaps(b *testing.B, f *fixture, client kubernetes.Interface) {
	maps, data := client.CoreV1().ConfigMaps("default"), map[string]string{"payload": strings.Repeat("x", 1024)}
	b.ReportAllocs()
	b.ResetTimer()
	start := cpu()
	for i := range b.N {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%d", i), Labels: map[string]string{"app": "bench"}}, Data: data}
		if _, err := maps.Create(f.ctx, object, metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cpu()-start).Microseconds())/float64(b.N), "cpu-us/op")
}

func BenchmarkCreateConfigMap(b *testing.B) {
	f := newFixture(b)
	createConfigMaps(b, f, f.admin)
}

func BenchmarkCreateConfigMapOverTLS(b *testing.B) {
	f := newFixture(b)
	createConfigMaps(b, f, kubernetes.NewForConfigOrDie(f.listen(b)))
}

// listed is how many objects are in a list.
const listed = 1000

func BenchmarkListOverTLS(b *testing.B) {
	for _, plain := range []bool{false, true} {
		b.Run(fmt.Sprintf("identity=%v", plain), func(b *testing.B) {
			f := newFixture(b)
			f.fill(b, listed)
			config := f.listen(b)
			config.DisableCompression = plain
			config.AcceptContentTypes = "application/json"
			client := kubernetes.NewForConfigOrDie(config)
			b.ReportAllocs()
			b.ResetTimer()
			start := cpu()
			for range b.N {
				body, err := client.CoreV1().RESTClient().Get().Namespace("default").Resource("configmaps").Param("labelSelector", "app=bench").DoRaw(f.ctx)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(body)))
			}
			b.ReportMetric(float64((cpu()-start).Microseconds())/float64(b.N), "cpu-us/op")
		})
	}
}

// fill stores n ConfigMaps of one kilobyte.
func (f *fixture) fill(b *testing.B, n int) {
	maps, data := f.admin.CoreV1().ConfigMaps("default"), map[string]string{"payload": strings.Repeat("x", 1024)}
	for i := range n {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("l%d", i), Labels: map[string]string{"app": "bench"}}, Data: data}
		if _, err := maps.Create(f.ctx, object, metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
