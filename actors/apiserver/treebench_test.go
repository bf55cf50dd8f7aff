package apiserver

import (
	"fmt"
	"runtime"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/nodeactor/nodeactor/actors/apiserver/supervisionapi"
	"github.com/nodeactor/nodeactor/cluster/identity"
)

// BenchmarkActorPages lists 100,000 actors as kubectl does, in tables of 500, and reports what the heap has grown by when it is done.
func BenchmarkActorPages(b *testing.B) {
	f := newTreeFixture(b)
	for i := range 100_000 {
		f.pool.Ensure(fmt.Sprintf("ns-%d:m-%d", i%100, i), doer)
	}
	client := kubernetes.NewForConfigOrDie(f.InProcess(identity.AdminUser, identity.MastersGroup)).CoreV1().RESTClient()
	before := heap()
	for b.Loop() {
		next := ""
		for {
			raw := client.Get().AbsPath("/apis/"+supervisionapi.GroupVersion.String()+"/actors").Param("limit", "500").Param("continue", next)
			table := &metav1.Table{}
			if err := raw.SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(f.ctx).Into(table); err != nil {
				b.Fatal(err)
			}
			if next = table.Continue; next == "" {
				break
			}
		}
	}
	b.ReportMetric(float64(heap()-before)/(1<<20), "MB-kept")
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
