package operators

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/cluster/lease"
)

// What tells a process that it is a worker, and of which store.
const (
	envDir  = "OPERATORS_DIR"
	envNode = "OPERATORS_NODE"
	// envSilent makes the end of a process no news.
	envSilent = "OPERATORS_SILENT"
)

// atOnce is how many tests may wait at a time.
const atOnce = "64"

func TestMain(m *testing.M) {
	if os.Getenv(envDir) == "" {
		flag.Parse()
		_ = flag.Set("test.parallel", atOnce) // the tests wait, nearly all the time
		os.Exit(m.Run())
	}
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Job is what the workers tend.
type Job struct {
	Number int `json:"number"`
}

// Kind implements operator.Specification.
func (Job) Kind() string { return "Job" }

// Effect is what a pass does: an object that is written once, under the fence, so that the revisions of all effects are the order in which
// they were accepted.
type Effect struct {
	Manifest, Holder string
	Epoch            uint64
}

const effectKind = "Effect"

// Paces of a pass: it has several effects with pauses between them, so that a process which is stopped is in the midst of some, and rests
// in between, because what is worked on is not moved.
const (
	effectsPerPass = 2
	betweenEffects = 150 * time.Millisecond
	betweenPasses  = 350 * time.Millisecond
	effectTimeout  = 20 * time.Second
)

// worker is one process. It is obstinate: it asks nobody whether it may, and does not mind being called off. Only the store stops it.
type worker struct {
	store   *storage.SharedStore
	effects atomic.Uint64
}

// work is the worker's main function.
func work() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var opts []storage.Option
	if os.Getenv(envSilent) != "" {
		opts = append(opts, storage.WithoutAnnouncements())
	}
	store, err := storage.OpenShared(os.Getenv(envDir), opts...)
	if err != nil {
		return err
	}
	defer store.Close()
	w := &worker{store: store}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	jobs, err := operator.NewControlPlane(operator.Func[Job](w.reconcile), operator.OperatorConfig{}, store,
		operator.WithNodeName(os.Getenv(envNode)), operator.WithLogger(log))
	if err != nil {
		return err
	}
	return jobs.Execute(ctx)
}

func (w *worker) reconcile(ctx context.Context, s *operator.ManifestState[Job]) (operator.Action, error) {
	f, ok := operator.Fence(ctx)
	if !ok {
		return operator.None(), errors.New("a pass without a fence")
	}
	for range effectsPerPass {
		if err := w.effect(ctx, f); err != nil {
			fmt.Println(said(err), f.Manifest, f.Epoch, f.Holder)
		}
		time.Sleep(betweenEffects)
	}
	return operator.Requeue(betweenPasses), nil
}

// said is a word for the parent.
func said(err error) string {
	if errors.Is(err, storage.ErrFenced) {
		return "refused"
	}
	return "unknown"
}

// effect writes one under a fence, whatever the context of the pass says.
func (w *worker) effect(ctx context.Context, f lease.Fence) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), effectTimeout)
	defer cancel()
	id, _ := storage.ParseKey(f.Manifest)
	value, err := json.Marshal(Effect{Manifest: f.Manifest, Holder: f.Holder.String(), Epoch: f.Epoch})
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s.%s.%d.%d", id.Name, os.Getenv(envNode), f.Epoch, w.effects.Add(1))
	if _, err := w.store.Write(ctx, storage.Write{Fence: &f, ID: storage.ID{Kind: effectKind, Name: name}, Value: value}); err != nil {
		return err
	}
	fmt.Println("did", f.Manifest, f.Epoch, f.Holder)
	return nil
}
