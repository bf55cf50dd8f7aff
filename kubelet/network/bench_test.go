package network

import (
	"context"
	"testing"
)

// BenchmarkAttachDetach connects and disconnects one pod, with a ledger that costs nothing.
func BenchmarkAttachDetach(b *testing.B) {
	n, pod := setUp(b), newPod(b)
	for b.Loop() {
		if _, err := n.Attach(context.Background(), "a", pod); err != nil {
			b.Fatal(err)
		}
		if err := n.Detach(context.Background(), "a"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAttachAgain attaches a pod that is connected, as every start of the kubelet does for every pod.
func BenchmarkAttachAgain(b *testing.B) {
	n, pod := setUp(b), newPod(b)
	for b.Loop() {
		if _, err := n.Attach(context.Background(), "a", pod); err != nil {
			b.Fatal(err)
		}
	}
}
