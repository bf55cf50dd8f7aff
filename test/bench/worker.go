package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/actors/operator/storage"
)

const (
	// addingClients add manifests at once.
	addingClients = 64
	// changes of the specification are made, one every changeEvery or so, to see how long it takes until they are reconciled.
	changes, changeEvery = 1000, 20 * time.Millisecond
	// passTakes is how long a pass waits for something outside, rateConcurrency how many a process runs at a time.
	passTakes, rateConcurrency = 50 * time.Millisecond, 32
	// lookEvery is how often progress is looked at.
	lookEvery = 20 * time.Millisecond
)

// ticket is the specification of the trivial operator.
type ticket struct {
	Number int    `json:"number"`
	Text   string `json:"text"`
}

// Kind implements operator.Specification.
func (ticket) Kind() string { return "Ticket" }

// worker is a process that runs an operator and measures it.
type worker struct {
	mode, dir, name string
	manifests       int
	rest            time.Duration

	store storage.Store
	plane *operator.ControlPlane[ticket]
	// passes counts; begun is when the first pass of a manifest with a number began, for those that are waited for.
	passes atomic.Int64
	begun  sync.Map
}

// runWorker is what a process of workerCommand does.
func runWorker(args []string) error {
	w := &worker{}
	flags := flag.NewFlagSet(workerCommand, flag.ContinueOnError)
	flags.StringVar(&w.mode, "mode", "", "full or rate")
	flags.StringVar(&w.dir, "dir", "", "folder of the store")
	flags.StringVar(&w.name, "name", "worker", "name of the process")
	flags.IntVar(&w.manifests, "manifests", 0, "how many there are")
	flags.DurationVar(&w.rest, "rest", time.Minute, "how long it is watched at rest")
	if err := flags.Parse(args); err != nil {
		return err
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	if w.mode == "rate" {
		return w.rate()
	}
	return w.full()
}

func tell(measure string, l line) error {
	l["measure"] = measure
	text, err := json.Marshal(l)
	if err == nil {
		_, err = fmt.Println(string(text))
	}
	return err
}

// Reconcile does next to nothing.
func (w *worker) Reconcile(_ context.Context, s *operator.ManifestState[ticket]) (operator.Action, error) {
	w.begun.LoadOrStore(s.Manifest.Spec.Number, time.Now())
	w.passes.Add(1)
	return operator.None(), nil
}

// full measures very many manifests in one process, on a store in a file.
func (w *worker) full() (err error) {
	empty, err := settledMemory()
	if err != nil {
		return err
	}
	if w.store, err = storage.OpenBolt(filepath.Join(w.dir, "store.db")); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.store.Close()) }()
	if w.plane, err = operator.NewControlPlane(w, operator.OperatorConfig{}, w.store, operator.WithNodeName(w.name)); err != nil {
		return err
	}
	if err := w.fill(); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- w.plane.Execute(ctx) }()
	defer func() { stop(); err = errors.Join(err, <-ended) }()
	if err := w.firstPass(began, ended); err != nil {
		return err
	}
	if err := w.atRest(empty); err != nil {
		return err
	}
	return w.latency()
}

// fill stores all manifests before anybody works on them.
func (w *worker) fill() error {
	began := time.Now()
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for range addingClients {
		all.Go(func() {
			for i := int(next.Add(1)); i <= w.manifests && failed.Load() == nil; i = int(next.Add(1)) {
				if err := w.plane.AddManifest(context.Background(), nameOf(i), ticket{Number: i, Text: "please"}); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	took := time.Since(began).Seconds()
	return tell("operators_add", line{"n": w.manifests, "seconds": took, "per_s": float64(w.manifests) / took})
}

func nameOf(i int) string { return fmt.Sprintf("tickets/ticket-%06d", i) }

// firstPass waits until every manifest was reconciled and its status is stored.
func (w *worker) firstPass(began time.Time, ended chan error) error {
	before := ownCPU()
	for w.plane.Stats().Writes < uint64(w.manifests) {
		select {
		case err := <-ended:
			ended <- err // for who waits for the end, and tells why
			return errors.New("the operator ended before every manifest was reconciled")
		case <-time.After(lookEvery):
		}
	}
	return tell("operators_first_pass", line{"n": w.manifests, "seconds": time.Since(began).Seconds(), "cpu_s": map[string]any{"total": ownCPU() - before}})
}

// atRest measures memory and CPU while nothing happens.
func (w *worker) atRest(empty float64) error {
	w.begun.Clear()
	time.Sleep(5 * time.Second)
	full, err := settledMemory()
	if err != nil {
		return err
	}
	stats := w.plane.Stats()
	err = tell("operators_memory", line{"n": w.manifests, "bytes": (full - empty) / float64(w.manifests), "actors": stats.Actors})
	if err != nil {
		return err
	}
	before, passes, began := ownCPU(), w.passes.Load(), time.Now()
	time.Sleep(w.rest)
	took := time.Since(began).Seconds()
	return tell("operators_rest", line{"seconds": took, "cpu_percent": 100 * (ownCPU() - before) / took, "passes": w.passes.Load() - passes})
}

// settledMemory is the memory of this process that no file stands behind, in bytes, when all garbage was given back: the pages of a store's
// file, which the kernel may drop at any time, do not count.
func settledMemory() (float64, error) {
	debug.FreeOSMemory()
	mib, err := memoryOf([]process{{name: workerCommand, pid: os.Getpid()}}, "RssAnon:")
	return mib * (1 << 20), err
}

// ownCPU is the CPU time of this process in seconds.
func ownCPU() float64 {
	used, err := usageOf([]process{{name: workerCommand, pid: os.Getpid()}})
	if err != nil {
		return 0
	}
	return used.cpuSeconds
}

// latency changes specifications one by one, and sees when their passes begin: from the call that changes one, and from its end.
func (w *worker) latency() error {
	var calls, acknowledged []float64
	for i := range changes {
		number := w.manifests + 1 + i
		name := nameOf(1 + rand.IntN(w.manifests))
		asked := time.Now()
		if err := w.plane.AddManifest(context.Background(), name, ticket{Number: number, Text: "changed"}); err != nil {
			return err
		}
		done := time.Now()
		began, err := w.beganWithin(number, 10*time.Second)
		if err != nil {
			return err
		}
		calls = append(calls, ms(began.Sub(asked)))
		acknowledged = append(acknowledged, max(0, ms(began.Sub(done))))
		time.Sleep(changeEvery/2 + rand.N(changeEvery))
	}
	return tell("operators_latency", line{
		"n": changes, "p50_ms": percentile(acknowledged, 50), "p99_ms": percentile(acknowledged, 99),
		"call_p50_ms": percentile(calls, 50), "call_p99_ms": percentile(calls, 99),
	})
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// beganWithin is when the pass of a number began.
func (w *worker) beganWithin(number int, limit time.Duration) (time.Time, error) {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(200 * time.Microsecond) {
		if at, ok := w.begun.Load(number); ok {
			return at.(time.Time), nil
		}
	}
	return time.Time{}, fmt.Errorf("no pass began within %s of a change", limit)
}

// busy is an operator whose passes wait for something outside, and have to be run again at once.
func (w *worker) busy(ctx context.Context, s *operator.ManifestState[ticket]) (operator.Action, error) {
	select {
	case <-time.After(passTakes):
	case <-ctx.Done():
		return operator.None(), ctx.Err()
	}
	w.passes.Add(1)
	return operator.Requeue(time.Millisecond), nil
}

// rate counts the passes of one of several processes on one store, while all of them are there.
func (w *worker) rate() (err error) {
	if w.store, err = storage.OpenShared(w.dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.store.Close()) }()
	config := operator.OperatorConfig{Concurrency: rateConcurrency}
	if w.plane, err = operator.NewControlPlane(operator.Func[ticket](w.busy), config, w.store, operator.WithNodeName(w.name)); err != nil {
		return err
	}
	for i := range w.manifests {
		if err := w.plane.AddManifest(context.Background(), nameOf(i+1), ticket{Number: i + 1}); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.plane.Execute(ctx) }()
	defer func() { stop(); err = errors.Join(err, <-ended) }()
	time.Sleep(rateSettle)
	before, began := w.passes.Load(), time.Now()
	time.Sleep(rateFor)
	rate := float64(w.passes.Load()-before) / time.Since(began).Seconds()
	held := w.plane.Stats().Held
	time.Sleep(rateSettle / 2) // the others count still
	return tell("operators_rate_part", line{"per_s": rate, "held": held, "name": w.name})
}
