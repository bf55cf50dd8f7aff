package adapter_test

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"

	"github.com/nodeactor/nodeactor/store/adapter"
)

// benchSetup stores values as they are in the product: not transformed.
func benchSetup(b *testing.B) (context.Context, *fixture) {
	return setup(b, func(c *adapter.Config) { c.Transformer = nil })
}

func BenchmarkStoreWriteThroughput(b *testing.B) {
	ctx, f := benchSetup(b)
	data := storagetesting.PrepareBenchmarkData(50, 60, 100)
	storagetesting.RunBenchmarkWriteThroughput(ctx, b, f, data, false, nil)
}

func BenchmarkStoreList(b *testing.B) {
	ctx, f := benchSetup(b)
	data := storagetesting.PrepareBenchmarkData(50, 100, 100)
	if err := storagetesting.PrecreateBenchmarkPods(ctx, f, data); err != nil {
		b.Fatal(err)
	}
	storagetesting.RunBenchmarkStoreList(ctx, b, f, data, false)
}

func BenchmarkStoreStats(b *testing.B) {
	ctx, f := benchSetup(b)
	storagetesting.RunBenchmarkStoreStats(ctx, b, f)
}

func pod(i int) (string, *example.Pod) {
	name := fmt.Sprintf("pod-%d", i)
	return "/pods/ns/" + name, &example.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": "bench"}}}
}

func BenchmarkCreate(b *testing.B) {
	for _, parallel := range []int{1, 32} {
		b.Run(fmt.Sprintf("writers=%d", parallel), func(b *testing.B) {
			ctx, f := benchSetup(b)
			jobs := make(chan int)
			done := make(chan error)
			for range parallel {
				go func() {
					for i := range jobs {
						key, obj := pod(i)
						if err := f.Create(ctx, key, obj, &example.Pod{}, 0); err != nil {
							done <- err
							return
						}
					}
					done <- nil
				}()
			}
			b.ResetTimer()
			for i := range b.N {
				jobs <- i
			}
			close(jobs)
			for range parallel {
				if err := <-done; err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkGet(b *testing.B) {
	ctx, f := benchSetup(b)
	key, obj := pod(0)
	if err := f.Create(ctx, key, obj, nil, 0); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := f.Get(ctx, key, storage.GetOptions{}, &example.Pod{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWatchLatency(b *testing.B) {
	ctx, f := benchSetup(b)
	w, err := f.Watch(ctx, "/pods/", storage.ListOptions{Predicate: storage.Everything, Recursive: true})
	if err != nil {
		b.Fatal(err)
	}
	defer w.Stop()
	i := 0
	for b.Loop() {
		key, obj := pod(i)
		i++
		go func() { _ = f.Create(ctx, key, obj, nil, 0) }()
		<-w.ResultChan()
	}
}
