package crash

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
)

const (
	writers = 64
	// defaultRounds is what the test command runs.
	defaultRounds = 30
	// longestRun is how long the writers write at most before the kill.
	longestRun = 400 * time.Millisecond
	// reportEvery is after how many rounds a long run says how far it is.
	reportEvery = 50
	namespace   = "default"
)

func setting(name string, fallback uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return fallback
}

// TestP21_KilledUnderLoad: 64 writers, kill -9 at a random moment, start, compare; again and again over the same data. In some of the rounds
// history is forgotten or a snapshot is being saved when the kill comes, and the store's quota is so small that it tends itself all the time.
func TestP21_KilledUnderLoad(t *testing.T) {
	rounds, seed := setting("CRASH_ROUNDS", defaultRounds), setting("CRASH_SEED", uint64(time.Now().UnixNano()))
	t.Logf("CRASH_ROUNDS=%d CRASH_SEED=%d", rounds, seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	n := newNode(t)
	all := newWriters(writers)
	var starts []time.Duration
	confirmed, chores := 0, map[string]int{}
	for round := range rounds {
		began := time.Now()
		n.launch()
		client, err := n.ready()
		if err != nil {
			t.Fatalf("round %d: the node did not start after a crash: %v", round, err)
		}
		starts = append(starts, time.Since(began))
		for _, lost := range verify(t, client, all) {
			t.Errorf("round %d: %s", round, lost)
		}
		if said := n.grep("was repaired"); said != "" {
			t.Errorf("round %d: a kill has damaged the store: %s", round, said)
		}
		if t.Failed() {
			return
		}
		if round%reportEvery == reportEvery-1 {
			t.Logf("%d rounds, %d acknowledged writes", round+1, confirmed)
		}
		c := chooseChore(rnd)
		chores[c.name]++
		confirmed += disturb(n, client, all, time.Duration(rnd.Int64N(int64(longestRun))), c)
	}
	slices.Sort(starts)
	t.Logf("%d rounds (%v; %d compactions and %d snapshots were acknowledged), %d acknowledged writes, none lost; start to ready: median %s, longest %s",
		rounds, chores, n.compactions.Load(), n.snapshots.Load(), confirmed, starts[len(starts)/2].Round(time.Millisecond), starts[len(starts)-1].Round(time.Millisecond))
	if confirmed == 0 {
		t.Error("no write was ever acknowledged")
	}
}

// disturb lets the writers write for a while, with a chore beside them, kills the node under them, and returns how much was acknowledged.
func disturb(n *node, c kubernetes.Interface, all []*writer, after time.Duration, beside chore) (confirmed int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var wg sync.WaitGroup
	for _, w := range all {
		confirmed -= w.acknowledged
		wg.Go(func() { w.write(ctx, c) })
	}
	if beside.do != nil {
		wg.Go(func() { beside.do(ctx, n, all) })
	}
	time.Sleep(after)
	n.kill()
	cancel()
	wg.Wait()
	for _, w := range all {
		confirmed += w.acknowledged
	}
	return confirmed
}
