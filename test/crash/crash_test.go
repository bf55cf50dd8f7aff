package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	writers = 64
	// defaultRounds is what the test command runs.
	defaultRounds = 30
	// longestRun is how long the writers write at most before the kill.
	longestRun = 400 * time.Millisecond
	namespace  = "default"
)

func setting(name string, fallback uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return fallback
}

// writer counts up in one object of its own, and now and then creates another one.
type writer struct {
	name string
	// acknowledged and asked are the highest counts that the API confirmed, and that may have been written.
	acknowledged, asked int
	revision            uint64
	version             string
	created             []string
}

// write goes on until the API is gone.
func (w *writer) write(ctx context.Context, c kubernetes.Interface) {
	maps := c.CoreV1().ConfigMaps(namespace)
	for ctx.Err() == nil {
		w.asked = max(w.asked, w.acknowledged+1)
		m := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: w.name, ResourceVersion: w.version}, Data: map[string]string{"count": strconv.Itoa(w.acknowledged + 1)}}
		var err error
		if w.version == "" {
			m, err = maps.Create(ctx, m, metav1.CreateOptions{})
		} else {
			m, err = maps.Update(ctx, m, metav1.UpdateOptions{})
		}
		if err != nil {
			return
		}
		w.confirm(m)
		if w.acknowledged%8 == 0 {
			extra := fmt.Sprintf("%s-%d", w.name, w.acknowledged)
			if m, err = maps.Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: extra}}, metav1.CreateOptions{}); err != nil {
				return
			}
			w.created = append(w.created, extra)
			w.revision = max(w.revision, revisionOf(m.ResourceVersion))
		}
	}
}

func (w *writer) confirm(m *v1.ConfigMap) {
	w.acknowledged, w.version = w.acknowledged+1, m.ResourceVersion
	w.revision = max(w.revision, revisionOf(m.ResourceVersion))
}

func revisionOf(version string) uint64 {
	n, _ := strconv.ParseUint(version, 10, 64)
	return n
}

// check compares what the store has with what the writer was told, and goes on from there.
func (w *writer) check(objects map[string]*v1.ConfigMap) (lost []string) {
	if m := objects[w.name]; m != nil {
		count, _ := strconv.Atoi(m.Data["count"])
		if count < w.acknowledged {
			lost = append(lost, fmt.Sprintf("%s counts %d, acknowledged were %d", w.name, count, w.acknowledged))
		}
		if count > w.asked {
			lost = append(lost, fmt.Sprintf("%s counts %d, only %d were asked for", w.name, count, w.asked))
		}
		w.acknowledged, w.version = count, m.ResourceVersion
	} else if w.acknowledged > 0 {
		lost = append(lost, w.name+" is gone")
	}
	for _, name := range w.created {
		if objects[name] == nil {
			lost = append(lost, name+" is gone")
		}
	}
	return lost
}

// TestKilledUnderLoad: 64 writers, kill -9 at a random moment, start, compare; again and again over the same data.
func TestKilledUnderLoad(t *testing.T) {
	rounds, seed := setting("CRASH_ROUNDS", defaultRounds), setting("CRASH_SEED", uint64(time.Now().UnixNano()))
	t.Logf("CRASH_ROUNDS=%d CRASH_SEED=%d", rounds, seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	n := newNode(t)
	all := make([]*writer, writers)
	for i := range all {
		all[i] = &writer{name: fmt.Sprintf("writer-%02d", i)}
	}
	var starts []time.Duration
	confirmed := 0
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
		if t.Failed() {
			return
		}
		confirmed += disturb(n, client, all, time.Duration(rnd.Int64N(int64(longestRun))))
	}
	slices.Sort(starts)
	t.Logf("%d rounds, %d acknowledged writes, none lost; start to ready: median %s, longest %s",
		rounds, confirmed, starts[len(starts)/2].Round(time.Millisecond), starts[len(starts)-1].Round(time.Millisecond))
	if confirmed == 0 {
		t.Error("no write was ever acknowledged")
	}
}

// verify reads everything back. The revision must not have gone back either.
func verify(t *testing.T, c kubernetes.Interface, all []*writer) (lost []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	list, err := c.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatalf("cannot read back: %v", err)
	}
	objects := map[string]*v1.ConfigMap{}
	for i := range list.Items {
		objects[list.Items[i].Name] = &list.Items[i]
	}
	for _, w := range all {
		lost = append(lost, w.check(objects)...)
		if w.revision > revisionOf(list.ResourceVersion) {
			lost = append(lost, fmt.Sprintf("the store is at revision %s, acknowledged was %d", list.ResourceVersion, w.revision))
		}
	}
	return lost
}

// disturb lets the writers write for a while, kills the node under them, and returns how much was acknowledged.
func disturb(n *node, c kubernetes.Interface, all []*writer, after time.Duration) (confirmed int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var wg sync.WaitGroup
	for _, w := range all {
		confirmed -= w.acknowledged
		wg.Go(func() { w.write(ctx, c) })
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
