package runtime

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/test/zombie"
)

// TestFencedGenerationCannotStartContainer: a generation that was given up wakes and calls the runtime: nothing is started, stopped or
// removed, and nothing is recorded; the same call of its successor works.
func TestFencedGenerationCannotStartContainer(t *testing.T) {
	h := newHost(t)
	h.sandbox("pod1")
	running := h.start("pod1", "sleep 1000")
	calls := map[string]func(ctx context.Context, generation uint64) error{
		"start": func(ctx context.Context, generation uint64) error {
			spec := h.spec("pod1", "sleep 1000")
			spec.ID = fmt.Sprintf("of-%d", generation)
			_, err := h.StartContainer(ctx, spec)
			return err
		},
		"sandbox": func(ctx context.Context, generation uint64) error {
			if generation == 2 {
				return nil
			}
			_, err := h.CreateSandbox(ctx, SandboxSpec{PodUID: "pod-of-1", Name: "p", Namespace: "default"})
			return err
		},
		"signal": func(ctx context.Context, generation uint64) error {
			sig := syscall.SIGKILL
			if generation == 2 {
				sig = syscall.SIGCONT
			}
			return h.Signal(ctx, running.ID, sig)
		},
		"kill": func(ctx context.Context, generation uint64) error {
			if generation == 2 {
				return nil
			}
			return h.Kill(ctx, running.ID)
		},
		"exec": func(ctx context.Context, _ uint64) error {
			_, err := h.Exec(ctx, running.ID, ExecSpec{Args: []string{"true"}})
			return err
		},
		"remove container": func(ctx context.Context, generation uint64) error {
			return h.RemoveContainer(ctx, map[uint64]string{1: running.ID, 2: "of-2"}[generation])
		},
		"remove sandbox": func(ctx context.Context, generation uint64) error {
			if generation == 2 {
				return nil
			}
			return h.RemoveSandbox(ctx, "pod1")
		},
	}
	for _, name := range []string{"start", "sandbox", "signal", "kill", "exec", "remove container", "remove sandbox"} {
		t.Run(name, func(t *testing.T) {
			second, first := zombie.Wake(t, calls[name])
			if second != nil {
				t.Errorf("the current generation: %v", second)
			}
			if !errors.Is(first, supervision.ErrFenced) {
				t.Errorf("the generation that was given up: %v", first)
			}
		})
	}
	pods, err := h.List(h.ctx())
	if err != nil || len(pods) != 1 || len(pods[0].Containers) != 1 || pods[0].Containers[0].ID != running.ID || pods[0].Containers[0].State != Running {
		t.Errorf("the runtime has %+v, %v", pods, err)
	}
	found := 0
	_ = h.cfg.Ledger.Each(bucketContainers, func(string, []byte) error { found++; return nil })
	if found != 1 {
		t.Errorf("%d containers are recorded, want 1", found)
	}
}
