package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/record"

	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/store/engine"
	"github.com/nodeactor/nodeactor/store/snapshot"
	"github.com/nodeactor/nodeactor/supervision"
)

// archived is a saver of a real store.
type archived struct {
	*saver
	cfg    Config
	store  *store.Store
	log    bytes.Buffer
	events *record.FakeRecorder
}

func newArchived(t *testing.T, cfg Config) *archived {
	t.Helper()
	a := &archived{events: record.NewFakeRecorder(100)}
	cfg.DataDir, cfg.NodeName = t.TempDir(), "n"
	a.cfg = cfg.WithDefaults()
	a.open(t)
	a.saver = newSaver(a.cfg, func() *store.Store { return a.store }, supervision.RealClock(), slog.New(slog.NewTextHandler(&a.log, nil)))
	a.saver.events = a.events
	return a
}

func (a *archived) open(t *testing.T) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{Dir: filepath.Join(a.cfg.DataDir, StoreDir), NodeName: "n", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	a.store = s
	t.Cleanup(func() { a.close(t) })
}

func (a *archived) close(t *testing.T) {
	if a.store == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := a.store.Close(ctx); err != nil {
		t.Error(err)
	}
	a.store = nil
}

// list is the snapshots there are.
func (a *archived) list(t *testing.T) (all []snapshot.Info) {
	t.Helper()
	for info, err := range snapshot.List(a.dir) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, info)
	}
	return all
}

// TestWhenToSave holds when a snapshot is due: when there is none, when the last one is old and something was written since, also after the
// clock was set back; and never in a quiet store.
func TestWhenToSave(t *testing.T) {
	a := newArchived(t, Config{SnapshotEvery: "1h"})
	now := time.Now()
	if w := a.wait(now); w != 0 {
		t.Fatalf("without a snapshot it waits %s", w)
	}
	if _, err := a.save(t.Context(), snapshot.Periodic, nil); err != nil {
		t.Fatal(err)
	}
	for at, due := range map[time.Duration]bool{0: false, 59 * time.Minute: false, 61 * time.Minute: false, 100 * time.Hour: false} {
		if w := a.wait(now.Add(at)); (w == 0) != due {
			t.Errorf("a quiet store after %s: it waits %s", at, w)
		}
	}
	a.write1(t)
	for at, due := range map[time.Duration]bool{0: false, 58 * time.Minute: false, 61 * time.Minute: true, -2 * time.Hour: true} {
		if w := a.wait(now.Add(at)); (w == 0) != due {
			t.Errorf("a store that was written to, after %s: it waits %s", at, w)
		}
	}
	// What another process has saved counts as well.
	b := newSaver(a.cfg, a.source, a.clock, slog.New(slog.DiscardHandler))
	if w := b.wait(now.Add(time.Minute)); w < 50*time.Minute {
		t.Errorf("after a restart it waits %s", w)
	}
	if err := a.store.Rest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w := a.wait(now.Add(2 * time.Hour)); w == 0 {
		t.Error("a store without an engine is to be saved")
	}
}

// write1 writes something that moves the store's revision.
func (a *archived) write1(t *testing.T) {
	t.Helper()
	r, err := a.store.Backend().Engine.Txn(t.Context(), engine.Write{Key: "/registry/configmaps/default/c", Expect: engine.AnyRevision, Value: []byte("v")})
	if err == nil {
		err = a.store.WaitApplied(t.Context(), r.Revision)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestFailingSnapshotIsToldOnce holds that a snapshot that fails is no fault, is told once, is tried again, and that its end is told too.
func TestFailingSnapshotIsToldOnce(t *testing.T) {
	a := newArchived(t, Config{SnapshotEvery: "1h"})
	if err := os.WriteFile(a.dir, nil, 0o600); err != nil { // a file where the directory should be
		t.Fatal(err)
	}
	for range 3 {
		if next := a.periodic(t.Context(), func() {}); next != snapshotRetry {
			t.Errorf("it is tried again in %s", next)
		}
	}
	if n := strings.Count(a.log.String(), "the store cannot be saved"); n != 1 {
		t.Errorf("it was told %d times:\n%s", n, a.log.String())
	}
	if got := gathered(t, a.saver)["nodeactor_snapshot_failing"]; got != 1 {
		t.Errorf("the metric says %v", got)
	}
	if err := os.Remove(a.dir); err != nil {
		t.Fatal(err)
	}
	if next := a.periodic(t.Context(), func() {}); next != time.Hour {
		t.Errorf("the next one is in %s", next)
	}
	all := gathered(t, a.saver)
	if all["nodeactor_snapshot_failing"] != 0 || all["nodeactor_snapshot_last_revision"] != float64(a.store.Revision()) || all["nodeactor_snapshot_last_bytes"] == 0 {
		t.Errorf("the metrics say %v", all)
	}
	for _, want := range []string{"SnapshotFailed", "SnapshotSaved"} {
		select {
		case got := <-a.events.Events:
			if !strings.Contains(got, want) {
				t.Errorf("the event is %q, want %s", got, want)
			}
		default:
			t.Errorf("there is no event %s", want)
		}
	}
}

// TestMembersDoNotChangeUnsaved holds that the store of a node is saved before its members change, and that they do not when it cannot be.
func TestMembersDoNotChangeUnsaved(t *testing.T) {
	a := newArchived(t, Config{})
	cfg, err := (&parts{cfg: a.cfg, saver: a.saver}).storeConfig()
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.BeforeMembershipChange(t.Context()); err != nil {
		t.Fatal(err)
	}
	if all := a.list(t); len(all) != 1 || all[0].Reason != snapshot.Membership || all[0].Revision != a.store.Revision() {
		t.Errorf("saved are %+v", all)
	}
	a.close(t)
	if err := cfg.BeforeMembershipChange(t.Context()); !errors.Is(err, ErrNotUp) {
		t.Errorf("without a store: %v", err)
	}
}

// TestUpgradeSavesFirst holds that the store is saved when another version of the program last ran, once, and that a damaged one or a full
// disk does not keep the node from starting.
func TestUpgradeSavesFirst(t *testing.T) {
	a := newArchived(t, Config{Version: "v2"})
	rev := a.store.Revision()
	a.close(t)
	start := func(version string) {
		t.Helper()
		cfg := a.cfg
		cfg.Version = version
		if err := beforeOpening(t.Context(), cfg, supervision.RealClock(), slog.New(slog.NewTextHandler(&a.log, nil))); err != nil {
			t.Fatal(err)
		}
		if got := lastVersion(cfg.DataDir); got != version {
			t.Errorf("recorded is %q", got)
		}
	}
	start("v2") // by a version that did not say
	if all := a.list(t); len(all) != 1 || all[0].Reason != snapshot.Upgrade || all[0].Revision != rev {
		t.Fatalf("saved %+v", all)
	}
	start("v2")
	if all := a.list(t); len(all) != 1 {
		t.Errorf("the same version saved again: %+v", all)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	cfg := a.cfg
	cfg.Version = "v3"
	if err := beforeOpening(stopped, cfg, supervision.RealClock(), a.saver.log); err != nil || lastVersion(cfg.DataDir) != "v2" {
		t.Errorf("told to stop before: %v, recorded %q", err, lastVersion(cfg.DataDir))
	}
	if err := os.Truncate(filepath.Join(a.cfg.DataDir, StoreDir, "member", "snap", "db"), 8192); err != nil {
		t.Fatal(err)
	}
	start("v3")
	if !strings.Contains(a.log.String(), "could not be saved before the upgrade") {
		t.Errorf("a damaged store:\n%s", a.log.String())
	}
	empty := a.cfg
	empty.DataDir = t.TempDir()
	if err := beforeOpening(t.Context(), empty, supervision.RealClock(), a.saver.log); err != nil {
		t.Error(err)
	}
	if made, _ := os.ReadDir(empty.DataDir); len(made) != 1 || made[0].Name() != versionFile {
		t.Errorf("an empty data directory holds %v", made)
	}
}

// TestSnapshotsOverTheSocket saves and streams through the local socket's handlers.
func TestSnapshotsOverTheSocket(t *testing.T) {
	a := newArchived(t, Config{})
	mux := http.NewServeMux()
	a.routes(mux)
	server := httptest.NewServer(mux)
	defer server.Close()
	c := &LocalClient{}
	c.http.Transport = redirect{server.URL}
	info, err := c.SaveSnapshot(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if good, err := snapshot.Verify(t.Context(), info.Path); err != nil || good != info || info.Reason != snapshot.Manual {
		t.Errorf("saved %+v, which is %+v, %v", info, good, err)
	}
	var stream bytes.Buffer
	about := int64(0)
	if err := c.StreamSnapshot(t.Context(), &stream, func(n int64) { about = n }); err != nil || about == 0 {
		t.Fatalf("streamed about %d: %v", about, err)
	}
	path := filepath.Join(t.TempDir(), "s.db")
	if err := os.WriteFile(path, stream.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := snapshot.Verify(t.Context(), path); err != nil || got.Revision != a.store.Revision() {
		t.Errorf("the stream is %+v, %v", got, err)
	}
	a.close(t)
	if err := c.StreamSnapshot(t.Context(), &stream, func(int64) {}); err == nil || !strings.Contains(err.Error(), ErrNotUp.Error()) {
		t.Errorf("streamed without a store: %v", err)
	}
	if _, err := c.SaveSnapshot(t.Context(), nil); err == nil || !strings.Contains(err.Error(), ErrNotUp.Error()) {
		t.Errorf("saved without a store: %v", err)
	}
}

// redirect sends every request to one server.
type redirect struct{ url string }

// RoundTrip implements http.RoundTripper.
func (d redirect) RoundTrip(r *http.Request) (*http.Response, error) {
	to, err := http.NewRequestWithContext(r.Context(), r.Method, d.url+r.URL.RequestURI(), r.Body)
	if err != nil {
		return nil, err
	}
	return http.DefaultTransport.RoundTrip(to)
}

// gathered is what a collector tells, by family and without labels.
func gathered(t *testing.T, s *saver) map[string]float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(s); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		m := f.GetMetric()[0]
		all[f.GetName()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
	}
	return all
}

func TestSnapshotSettings(t *testing.T) {
	for every, ok := range map[string]bool{"": true, "off": true, "0": true, "1h": true, "30m": true, "90": false, "-1h": false, "1ms": false, "hourly": false} {
		c := Config{DataDir: t.TempDir(), NodeName: "n", SnapshotEvery: every}.WithDefaults()
		if err := c.Validate(); (err == nil) != ok || err != nil && !errors.Is(err, ErrConfig) {
			t.Errorf("%q: %v", every, err)
		}
	}
	c := Config{DataDir: t.TempDir(), NodeName: "n", SnapshotKeep: -1}.WithDefaults()
	if err := c.Validate(); err == nil || !strings.Contains(fmt.Sprint(err), "snapshotKeep") {
		t.Errorf("%v", err)
	}
}
