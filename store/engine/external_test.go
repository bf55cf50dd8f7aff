package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/nodeactor/nodeactor/store/engine"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/test/etcdserver"
)

func externalConfig(s *etcdserver.Server) engine.ExternalConfig {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError + 1}))
	return engine.ExternalConfig{Endpoints: []string{s.Endpoint}, CAFile: s.CAFile, CertFile: s.CertFile, KeyFile: s.KeyFile, Clock: supervision.RealClock(), Log: log}
}

func external(t *testing.T, s *etcdserver.Server) (*engine.External, engine.Life) {
	t.Helper()
	e, err := engine.NewExternal(externalConfig(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	life, err := e.Begin(within(t, 20*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return e, life
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func write(t *testing.T, e engine.Engine, w engine.Write) engine.Result {
	t.Helper()
	res, err := e.Txn(within(t, 10*time.Second), w)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestExternalReadsAndWrites(t *testing.T) {
	ctx := within(t, 30*time.Second)
	e, _ := external(t, etcdserver.Start(t))
	first := write(t, e, engine.Write{Key: "/registry/a", Value: []byte("1")})
	if !first.Done {
		t.Fatal("create refused")
	}
	if again := write(t, e, engine.Write{Key: "/registry/a", Value: []byte("2")}); again.Done || again.Current == nil || string(again.Current.Value) != "1" {
		t.Fatalf("created twice: %+v", again)
	}
	second := write(t, e, engine.Write{Key: "/registry/a", Expect: first.Revision, Value: []byte("2")})
	if guarded := write(t, e, engine.Write{Key: "/registry/b", Guards: []engine.Guard{{Key: "/registry/a", ModRevision: first.Revision}}}); guarded.Done {
		t.Fatal("written over a guard that does not hold")
	}
	write(t, e, engine.Write{Key: "/registry/a", Expect: second.Revision, Delete: true})
	page, err := e.Range(ctx, "/registry/", "/registry0", first.Revision, 0)
	if err != nil || len(page.KVs) != 1 || string(page.KVs[0].Value) != "1" {
		t.Fatalf("in the past: %+v, %v", page, err)
	}
	changes, upto, err := e.History(ctx, "/registry/", "/registry0", 0, e.Revision(), 100)
	if err != nil || upto != e.Revision() || len(changes) != 3 || changes[0].Prev != nil || string(changes[1].Prev.Value) != "1" || !changes[2].Delete || string(changes[2].Prev.Value) != "2" {
		t.Fatalf("history up to %d of %d: %+v, %v", upto, e.Revision(), changes, err)
	}
	if _, err := e.Txn(ctx, engine.Write{Key: "/registry/big", Value: make([]byte, 2<<20)}); !errors.Is(err, engine.ErrTooLarge) {
		t.Fatalf("too large: %v", err)
	}
	if _, err := e.Range(ctx, "/registry/a", "", 1<<40, 0); !errors.Is(err, engine.ErrFuture) {
		t.Fatalf("future: %v", err)
	}
	var snapshot bytes.Buffer
	if err := e.Snapshot(ctx, &snapshot); err != nil {
		t.Fatal(err)
	}
	opensAsDatabase(t, snapshot.Bytes())
	if st := e.Status(); st.DBSize == 0 || st.Members != 1 || !st.Leader || st.Revision != e.Revision() {
		t.Fatalf("status %+v", st)
	}
	if e.Solo() {
		t.Fatal("an external store is never alone")
	}
}

func opensAsDatabase(t *testing.T, raw []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
}

func TestExternalLeasesExpire(t *testing.T) {
	e, _ := external(t, etcdserver.Start(t))
	id, err := e.Grant(within(t, 10*time.Second), 1)
	if err != nil {
		t.Fatal(err)
	}
	write(t, e, engine.Write{Key: "/registry/short", Value: []byte("v"), Lease: id})
	for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		page, err := e.Range(within(t, 5*time.Second), "/registry/short", "", 0, 0)
		if err == nil && len(page.KVs) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the key outlives its lease: %v", err)
		}
	}
}

// follower keeps what a life hands out.
type follower struct {
	mu      sync.Mutex
	changes []engine.Change
	rev     int64
	err     error
	done    chan struct{}
}

func follow(ctx context.Context, life engine.Life, after int64) *follower {
	f := &follower{done: make(chan struct{})}
	go func() {
		defer close(f.done)
		err := life.Follow(ctx, "/registry/", after, func(b engine.Batch) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.changes, f.rev = append(f.changes, b.Changes...), b.Revision
			return nil
		})
		f.mu.Lock()
		defer f.mu.Unlock()
		f.err = err
	}()
	return f
}

func (f *follower) upTo(t *testing.T, rev int64, limit time.Duration) []engine.Change {
	t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		f.mu.Lock()
		have, changes, err := f.rev, f.changes, f.err
		f.mu.Unlock()
		if have >= rev {
			return changes
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("followed up to %d of %d: %v", have, rev, err)
		}
	}
}

// TestExternalFollowsWhatDoesNotConcernIt: a reader's barrier may be the revision of somebody else's key.
func TestExternalFollowsWhatDoesNotConcernIt(t *testing.T) {
	e, life := external(t, etcdserver.Start(t))
	f := follow(within(t, 30*time.Second), life, e.Revision())
	for i := range 3 {
		write(t, e, engine.Write{Key: fmt.Sprint("elsewhere/", i), Value: []byte("v")})
		begin := time.Now()
		rev, err := e.Barrier(within(t, 5*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if changes := f.upTo(t, rev, 5*time.Second); len(changes) != 0 {
			t.Fatalf("saw %+v", changes)
		}
		t.Logf("passed a foreign revision after %v", time.Since(begin))
	}
}

// TestP34_ExternalSurvivesRestartsUnderLoad: no acknowledged write is lost, no change is missed or told twice, whatever happens to the server.
func TestP34_ExternalSurvivesRestartsUnderLoad(t *testing.T) {
	server := etcdserver.Start(t)
	e, life := external(t, server)
	begin := e.Revision()
	f := follow(within(t, time.Minute), life, begin)
	const writers, rounds = 8, 3
	acked := make([]map[string]int64, writers)
	stop, group := make(chan struct{}), sync.WaitGroup{}
	for w := range writers {
		acked[w] = map[string]int64{}
		group.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				key := fmt.Sprintf("/registry/x/%d-%d", w, i)
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				res, err := e.Txn(ctx, engine.Write{Key: key, Value: []byte(key)})
				cancel()
				if err == nil && !res.Done {
					t.Errorf("%s: somebody else's: %+v", key, res.Current)
				}
				if err == nil {
					acked[w][key] = res.Revision
				} else if !errors.Is(err, engine.ErrUnknown) && !errors.Is(err, engine.ErrAway) {
					t.Errorf("%s: %v", key, err)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	for range rounds {
		time.Sleep(300 * time.Millisecond)
		server.Stop()
		time.Sleep(200 * time.Millisecond)
		server.Start()
	}
	time.Sleep(300 * time.Millisecond)
	close(stop)
	group.Wait()
	rev := back(t, e)
	seen, last, total := map[string]int64{}, begin, 0
	for _, c := range f.upTo(t, rev, 20*time.Second) {
		if c.KV.ModRevision <= last {
			t.Fatalf("revision %d after %d", c.KV.ModRevision, last)
		}
		seen[c.KV.Key], last = c.KV.ModRevision, c.KV.ModRevision
	}
	for _, keys := range acked {
		for key, rev := range keys {
			if total++; seen[key] != rev {
				t.Errorf("%s was acknowledged at %d and seen at %d", key, rev, seen[key])
			}
		}
	}
	t.Logf("%d acknowledged writes over %d restarts, %d changes seen", total, rounds, len(seen))
	if total < 3*writers {
		t.Errorf("only %d writes", total)
	}
}

// back waits until the engine answers again.
func back(t *testing.T, e *engine.External) int64 {
	t.Helper()
	begin := time.Now()
	for {
		rev, err := e.Barrier(within(t, 5*time.Second))
		if err == nil {
			t.Logf("answers again after %v", time.Since(begin))
			return rev
		}
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("not back: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestExternalAway: with no endpoint calls fail soon and say so, and go on by themselves when there is one again.
func TestExternalAway(t *testing.T) {
	server := etcdserver.Start(t)
	e, life := external(t, server)
	f := follow(within(t, time.Minute), life, e.Revision())
	before := write(t, e, engine.Write{Key: "/registry/a", Value: []byte("1")})
	server.Stop()
	time.Sleep(2500 * time.Millisecond)
	begin := time.Now()
	if _, err := e.Barrier(within(t, 30*time.Second)); !errors.Is(err, engine.ErrAway) {
		t.Fatalf("barrier: %v", err)
	}
	if _, err := e.Txn(within(t, 30*time.Second), engine.Write{Key: "/registry/b"}); !errors.Is(err, engine.ErrAway) {
		t.Fatalf("write: %v", err)
	}
	if _, err := e.Range(within(t, 30*time.Second), "/registry/a", "", 0, 0); !errors.Is(err, engine.ErrAway) {
		t.Fatalf("range: %v", err)
	}
	if took := time.Since(begin); took > time.Second {
		t.Fatalf("refusals took %v", took)
	}
	if life.Err() != nil || e.Err() != nil {
		t.Fatalf("an absence is no failure: %v, %v", life.Err(), e.Err())
	}
	server.Start()
	back(t, e)
	after := write(t, e, engine.Write{Key: "/registry/b", Value: []byte("2")})
	if got := f.upTo(t, after.Revision, 10*time.Second); len(got) != 2 || got[0].KV.ModRevision != before.Revision || got[1].KV.ModRevision != after.Revision {
		t.Fatalf("saw %+v", got)
	}
}

// TestExternalCompactsInTurns: of several API servers one forgets, and all learn of it.
func TestExternalCompactsInTurns(t *testing.T) {
	server := etcdserver.Start(t)
	a, life := external(t, server)
	b, _ := external(t, server)
	for i := range 20 {
		write(t, a, engine.Write{Key: "/registry/a", Expect: engine.AnyRevision, Value: fmt.Append(nil, i)})
	}
	ctx := within(t, 20*time.Second)
	first := a.Revision() - 10
	if err := a.Compact(ctx, first); err != nil || a.Status().Compacted != first {
		t.Fatalf("compacted to %d, %v", a.Status().Compacted, err)
	}
	if err := b.Compact(ctx, first+5); err != nil || b.Status().Compacted != first {
		t.Fatalf("the other: compacted to %d, want %d, %v", b.Status().Compacted, first, err)
	}
	if _, err := a.Range(ctx, "/registry/a", "", first+1, 0); err != nil {
		t.Fatalf("forgotten twice: %v", err)
	}
	if err := b.Compact(ctx, first+5); err != nil || b.Status().Compacted != first+5 {
		t.Fatalf("the other's turn: compacted to %d, %v", b.Status().Compacted, err)
	}
	if err := life.Follow(ctx, "/registry/", 1, func(engine.Batch) error { return nil }); !errors.Is(err, engine.ErrCompacted) {
		t.Fatalf("following from before: %v", err)
	}
	if _, _, err := a.History(ctx, "/registry/", "/registry0", 1, a.Revision(), 10); !errors.Is(err, engine.ErrCompacted) {
		t.Fatalf("history from before: %v", err)
	}
}

func TestExternalRefusals(t *testing.T) {
	server := etcdserver.Start(t)
	none := filepath.Join(t.TempDir(), "none")
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		with func(*engine.ExternalConfig)
		want string
	}{
		"no endpoint":       {func(c *engine.ExternalConfig) { c.Endpoints = nil }, "no endpoint"},
		"not https":         {func(c *engine.ExternalConfig) { c.Endpoints = []string{"http://127.0.0.1:2379"} }, "https://"},
		"no port":           {func(c *engine.ExternalConfig) { c.Endpoints = []string{"https://127.0.0.1"} }, "HOST:PORT"},
		"no CA file":        {func(c *engine.ExternalConfig) { c.CAFile = none }, none},
		"CA is text":        {func(c *engine.ExternalConfig) { c.CAFile = text }, text},
		"key without cert":  {func(c *engine.ExternalConfig) { c.CertFile = "" }, "together"},
		"key is text":       {func(c *engine.ExternalConfig) { c.KeyFile = text }, text},
		"key of another":    {func(c *engine.ExternalConfig) { c.KeyFile = server.StrangeKeyFile }, server.StrangeKeyFile},
		"other CA":          {func(c *engine.ExternalConfig) { c.CAFile = server.StrangeCAFile }, server.StrangeCAFile},
		"other client":      {func(c *engine.ExternalConfig) { c.CertFile, c.KeyFile = server.StrangeCertFile, server.StrangeKeyFile }, server.StrangeCertFile},
		"no client cert":    {func(c *engine.ExternalConfig) { c.CertFile, c.KeyFile = "", "" }, "wants a certificate"},
		"the host's own CA": {func(c *engine.ExternalConfig) { c.CAFile = "" }, "no CA file"},
	} {
		t.Run(what, func(t *testing.T) {
			cfg := externalConfig(server)
			c.with(&cfg)
			e, err := engine.NewExternal(cfg)
			if err == nil {
				defer func() { _ = e.Close(context.Background()) }()
				_, err = e.Begin(within(t, 10*time.Second))
			}
			if !errors.Is(err, engine.ErrEndpoints) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			t.Log(err)
		})
	}
}

// TestExternalWaitsForItsEndpoints: nothing there is no error of the settings.
func TestExternalWaitsForItsEndpoints(t *testing.T) {
	server := etcdserver.Prepare(t)
	e, err := engine.NewExternal(externalConfig(server))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	if _, err := e.Begin(within(t, time.Second)); !errors.Is(err, engine.ErrAway) || errors.Is(err, engine.ErrEndpoints) {
		t.Fatalf("nothing there: %v", err)
	}
	began := make(chan error, 1)
	go func() { _, err := e.Begin(within(t, 30*time.Second)); began <- err }()
	time.Sleep(300 * time.Millisecond)
	server.Start()
	if err := <-began; err != nil {
		t.Fatal(err)
	}
}
