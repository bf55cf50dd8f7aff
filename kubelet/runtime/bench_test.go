package runtime

import (
	"context"
	"fmt"
	"testing"
)

// BenchmarkPod is one pod from nothing to a running process and away again.
func BenchmarkPod(b *testing.B) {
	h := newHost(b)
	ctx := context.Background()
	for i := range b.N {
		pod := fmt.Sprintf("pod%d", i)
		if _, err := h.CreateSandbox(ctx, SandboxSpec{PodUID: pod, Hostname: pod}); err != nil {
			b.Fatal(err)
		}
		if _, err := h.StartContainer(ctx, h.spec(pod, "sleep 1000")); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := h.RemoveSandbox(ctx, pod); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkList is one relist of 50 running containers.
func BenchmarkList(b *testing.B) {
	h := newHost(b)
	h.sandbox("pod1")
	for range 50 {
		h.start("pod1", "sleep 1000")
	}
	for b.Loop() {
		if _, err := h.List(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkExec is one short command in a running container.
func BenchmarkExec(b *testing.B) {
	h := newHost(b)
	h.sandbox("pod1")
	c := h.start("pod1", "sleep 1000")
	for b.Loop() {
		if _, err := h.Exec(context.Background(), c.ID, ExecSpec{Args: []string{"true"}}); err != nil {
			b.Fatal(err)
		}
	}
}
