package kubelet

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestPodStartIsFast measures create to Ready, image present, over a few pods one after the other.
func TestPodStartIsFast(t *testing.T) {
	h := newHost(t, nil)
	var took []time.Duration
	for i := range 10 {
		name := fmt.Sprintf("fast%d", i)
		begin := time.Now()
		h.create(shell(name, "exec sleep 1000"))
		h.running(name)
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	t.Logf("create to Ready: median %v, worst %v", took[len(took)/2], took[len(took)-1])
	if took[len(took)/2] > 5*time.Second {
		t.Error("pods start too slowly")
	}
}
