package health

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/store/engine"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

type facts struct{}

func (facts) Revision() int64        { return 42 }
func (facts) Counts() map[string]int { return map[string]int{"pods": 3} }
func (facts) Refusal() error         { return nil }
func (facts) Stats() store.Stats {
	return store.Stats{
		Local: true, WatchEvents: 800, WatchEncodings: 20, Revision: 42, CompactedRevision: 30, TendedFor: time.Minute,
		Stats: engine.Stats{
			DBSize: 4096, DBInUse: 2048, Quota: 8192, Commits: engine.Latencies{Count: 2, Sum: 3, Buckets: map[float64]uint64{1: 1, 2: 2}},
			Refused: map[string]uint64{engine.ForQuota: 5}, Syncs: &engine.Syncs{Log: 6, Database: 4}, Defrags: 1, DefragTime: time.Second,
		},
	}
}

// doer is a worker whose messages are functions.
func doer() supervision.Handler {
	return supervision.HandlerFunc(func(_ supervision.Context, msg any) error {
		if f, ok := msg.(func() error); ok {
			return f()
		}
		return nil
	})
}

// observed starts a worker and a pool, and a registry that shows them.
func observed(t *testing.T) (*supervision.System, *prometheus.Registry) {
	t.Helper()
	s, err := supervision.New(supervision.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(&Collector{System: s, Root: "node", Facts: func() StoreFacts { return facts{} }, Resources: func() int { return 70 }}); err != nil {
		t.Fatal(err)
	}
	scheduler, pods, pod := catalog.Row("scheduler"), catalog.Row("pods"), catalog.Row("pod")
	scheduler.Start, pod.Start, pods.Template = doer, doer, &pod
	root := catalog.Row("node")
	root.Children = []supervision.Spec{pods, scheduler}
	if err := s.Start(root); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(context.Background()) })
	return s, r
}

// value is one sample of what is gathered; labels are as in "path=scheduler".
func value(t *testing.T, r prometheus.Gatherer, name string, labels ...string) (v float64, ok bool) {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			all := " "
			for _, l := range m.GetLabel() {
				all += l.GetName() + "=" + l.GetValue() + " "
			}
			if has(all, labels) {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetHistogram().GetSampleSum(), true
			}
		}
	}
	return 0, false
}

func has(all string, labels []string) bool {
	for _, l := range labels {
		if !strings.Contains(all, " "+l+" ") {
			return false
		}
	}
	return true
}

func expect(t *testing.T, r prometheus.Gatherer, want float64, name string, labels ...string) {
	t.Helper()
	if got, ok := value(t, r, name, labels...); !ok || got != want {
		t.Errorf("%s%v is %v (there: %v), want %v", name, labels, got, ok, want)
	}
}

// TestP23_StoreIsMeasured: the store's file, its history and what was done about them are there to be watched.
func TestP23_StoreIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := observed(t)
		expect(t, r, 4096, "nodeactor_store_db_size_bytes")
		expect(t, r, 2048, "nodeactor_store_db_in_use_bytes")
		expect(t, r, 8192, "nodeactor_store_quota_bytes")
		expect(t, r, 30, "nodeactor_store_compacted_revision")
		expect(t, r, 12, "nodeactor_store_compaction_lag_revisions")
		expect(t, r, 60, "nodeactor_store_compaction_lag_seconds")
		expect(t, r, 1, "nodeactor_store_defrags_total", "result=success")
		expect(t, r, 1, "nodeactor_store_defrag_seconds_total")
		s.Stop(context.Background())
	})
}

// TestWatchesAreMeasured: how many events watches were sent, and how few encodings that took.
func TestWatchesAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := observed(t)
		expect(t, r, 800, "nodeactor_store_watch_events_total")
		expect(t, r, 20, "nodeactor_store_watch_encodings_total")
		s.Stop(context.Background())
	})
}

// TestP25_SyncsAreMeasured and TestP26_CommitsAreMeasured: how often the store waits for its disk, and for how long.
func TestP25_SyncsAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := observed(t)
		expect(t, r, 6, "nodeactor_store_fsync_total", "file=log")
		expect(t, r, 4, "nodeactor_store_fsync_total", "file=database")
		s.Stop(context.Background())
	})
}

func TestP26_CommitsAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := observed(t)
		expect(t, r, 3, "nodeactor_store_commit_seconds")
		expect(t, r, 0, "nodeactor_store_proposals_pending")
		expect(t, r, 0, "nodeactor_store_waiting_writers")
		expect(t, r, 5, "nodeactor_store_refused_writes_total", "reason=quota")
		s.Stop(context.Background())
	})
}

func TestMetricsShowTreeAndStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := observed(t)
		pool := s.Pool("node/pods")
		for _, id := range []string{"a", "b", "c"} {
			pool.Ensure(id, doer)
		}
		synctest.Wait()
		began := time.Now()
		s.Send(s.Ref("node/scheduler"), func() error { panic("counted") })
		s.Send(s.Ref("node/scheduler"), 1)
		pool.Send("b", func() error { return errors.New("it fails") })
		synctest.Wait()
		expect(t, r, 1, "nodeactor_actors", "path=scheduler", "row=scheduler", "state=backing-off")
		expect(t, r, 0, "nodeactor_actor_alive", "path=scheduler")
		time.Sleep(10 * time.Second)
		synctest.Wait()

		expect(t, r, 42, "nodeactor_store_revision")
		expect(t, r, 3, "etcd_object_counts", "resource=pods")
		expect(t, r, 70, "apiserver_registered_resources")
		expect(t, r, 1, "nodeactor_faults_total", "path=scheduler", "kind=Panic")
		expect(t, r, 1, "nodeactor_faults_total", "path=pods/*", "kind=ErrorReturn")
		expect(t, r, 1, "nodeactor_dead_letters_total")
		expect(t, r, 3, "nodeactor_actors", "path=pods/*", "row=pod", "state=running")
		expect(t, r, 1, "nodeactor_actor_alive", "path=scheduler")
		expect(t, r, 2, "nodeactor_actor_generation", "path=scheduler")
		expect(t, r, 1, "nodeactor_actor_restarts_total", "path=scheduler")
		expect(t, r, 1, "nodeactor_revivals_total", "row=pod")
		for _, row := range []string{"scheduler", "pod"} {
			if took, ok := value(t, r, "nodeactor_repair_seconds", "row="+row); !ok || took <= 0 || took > time.Since(began).Seconds() {
				t.Errorf("the repair of the %s took %v s", row, took)
			}
		}
		if _, ok := value(t, r, "nodeactor_actor_alive", "path=pods/*"); ok {
			t.Error("a pool's members have a series of one actor")
		}
		s.Stop(context.Background())
	})
}

func TestMetricsShowWhatWaitsAndWhatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := observed(t)
		release := make(chan bool)
		s.Send(s.Ref("node/scheduler"), func() error { <-release; return nil })
		synctest.Wait()
		for range 3 {
			s.Send(s.Ref("node/scheduler"), 1)
		}
		time.Sleep(8 * time.Second)
		expect(t, r, 3, "nodeactor_actor_mailbox_messages", "path=scheduler")
		if age, _ := value(t, r, "nodeactor_actor_oldest_message_seconds", "path=scheduler"); age < 6 || age > 8 {
			t.Errorf("the oldest message is %v s old", age)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		expect(t, r, 1, "nodeactor_faults_total", "path=scheduler", "kind=Hang")
		expect(t, r, 1, "nodeactor_abandoned_total")
		expect(t, r, 1, "nodeactor_zombies")
		expect(t, r, 1, "nodeactor_actor_zombies", "path=scheduler")
		close(release)
		synctest.Wait()
		expect(t, r, 0, "nodeactor_zombies")
		expect(t, r, 1, "nodeactor_abandoned_total")
		s.Stop(context.Background())
	})
}

func TestMetricsAreWellFormed(t *testing.T) {
	s, r := observed(t)
	s.Pool("node/pods").Ensure("a", doer)
	s.Send(s.Ref("node/nobody"), 1)
	if _, err := s.MeasureCPU(context.Background(), time.Millisecond); err != nil {
		t.Fatal(err)
	}
	problems, err := testutil.GatherAndLint(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(families) < 15 {
		t.Errorf("only %d families are there to look at", len(families))
	}
}

// TestSeriesDoNotGrowWithPools: a pool has as many series with a thousand members as with one.
func TestSeriesDoNotGrowWithPools(t *testing.T) {
	s, r := observed(t)
	count := func(members int) int {
		for i := range members {
			s.Pool("node/pods").Ensure(string(rune('a'+i)), doer)
		}
		for n := 0; n < members; {
			v, _ := value(t, r, "nodeactor_actors", "path=pods/*", "state=running")
			n = int(v)
		}
		n, err := testutil.GatherAndCount(r)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if one, many := count(1), count(1000); one != many {
		t.Errorf("%d series with one member, %d with a thousand", one, many)
	}
}
