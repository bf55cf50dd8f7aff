package apiserver

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/nodeactor/nodeactor/store/engine"
)

// TestP69_RelistNeedsLittleMemory: listing 10,000 pods again, as every client does that has lost its watch, needs at most 1.3 times the heap that
// the process has anyway. Garbage is collected at once meanwhile: what is compared is what is needed.
func TestP69_RelistNeedsLittleMemory(t *testing.T) {
	f := newFixture(t)
	pods := 10000
	if raceEnabled {
		pods = 3000
		t.Log("3,000 pods: the race detector makes 10,000 take a minute")
	}
	storePods(t, f, pods)
	client := newRawClient(t, f.listen(t))
	list := func(accept, query string) int64 {
		n, err := io.Copy(io.Discard, client.open(f.ctx, t, "/api/v1/pods"+query, accept))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	list(asJSON, "") // decodes what is stored
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	for _, accept := range []string{asJSON, asProtobuf} {
		runtime.GC()
		steady := heapSize()
		peak := peakOf(func() {
			if n := list(accept, ""); n < 1<<20 {
				t.Errorf("%s: the list has %d bytes", accept, n)
			}
		})
		t.Logf("%s: %d MiB steady, %d MiB at most", accept, steady>>20, peak>>20)
		if peak > steady*13/10 {
			t.Errorf("%s: a relist takes the heap from %d to %d MiB", accept, steady>>20, peak>>20)
		}
	}
}

// storePods writes pods below the API, many at a time.
func storePods(t *testing.T, f *fixture, n int) {
	t.Helper()
	info, _ := apiruntime.SerializerInfoForMediaType(legacyscheme.Codecs.SupportedMediaTypes(), apiruntime.ContentTypeProtobuf)
	codec := legacyscheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion)
	var next atomic.Int64
	var group sync.WaitGroup
	for range 64 {
		group.Go(func() {
			for i := int(next.Add(1)); i <= n; i = int(next.Add(1)) {
				value, err := apiruntime.Encode(codec, fullPod(i))
				if err == nil {
					_, err = f.store.Backend().Engine.Txn(f.ctx, engine.Write{Key: fmt.Sprintf("/registry/pods/default/pod-%05d", i), Value: value})
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

// fullPod is a pod about as large as those that run.
func fullPod(i int) *corev1.Pod {
	name := fmt.Sprintf("pod-%05d", i)
	limits := corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("64Mi")}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name), CreationTimestamp: metav1.Unix(1700000000, 0),
			Labels: map[string]string{"app": "many", "pod-template-hash": "5d4f8c7b9"}, Annotations: map[string]string{"note": "a pod of many"}},
		Spec: corev1.PodSpec{NodeName: "node", RestartPolicy: corev1.RestartPolicyAlways},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}},
	}
	for c := range 2 {
		name := fmt.Sprintf("c%d", c)
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name, Image: "registry.example/app:v1",
			Env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}}, Resources: corev1.ResourceRequirements{Limits: limits, Requests: limits}})
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, Ready: true, ImageID: "sha256:0123456789abcdef"})
	}
	return p
}

// heapSize is the size of the objects on it, in bytes.
func heapSize() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// peakOf is the largest heap while f runs.
func peakOf(f func()) (peak uint64) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			peak = max(peak, heapSize())
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	f()
	close(stop)
	<-stopped
	return peak
}
