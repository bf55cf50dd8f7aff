package snapshot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/store/engine"
)

// errSource is how a source fails.
var errSource = errors.New("the source broke")

// begun writes some megabytes and then does what it is told.
func begun(then func() error) Source {
	return func(_ context.Context, w io.Writer) error {
		for range 80 {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return err
			}
		}
		return then()
	}
}

// empty fails when a directory holds anything.
func empty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("%s is left behind", e.Name())
	}
}

// TestFailedSaveLeavesNothing holds that whatever ends a save, nothing of it stays.
func TestFailedSaveLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	for _, c := range []struct {
		name   string
		source Source
		want   error
	}{
		{"the source fails", begun(func() error { return errSource }), errSource},
		{"what it writes is no database", begun(func() error { return nil }), ErrDamaged},
		{"it writes nothing", func(context.Context, io.Writer) error { return nil }, nil},
		{"the caller gives up", func(ctx context.Context, w io.Writer) error { cancel(); _, err := w.Write([]byte("x")); return err }, context.Canceled},
	} {
		dir := t.TempDir()
		_, err := Save(ctx, dir, Manual, c.source, SaveOptions{})
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		empty(t, dir)
	}
	if _, err := Save(t.Context(), t.TempDir(), "Not a reason", begun(nil), SaveOptions{}); err == nil {
		t.Error("a reason that no name can hold is taken")
	}
}

// TestSaveKeepsRoomForTheStore holds that a save that is known to be too large is not begun.
func TestSaveKeepsRoomForTheStore(t *testing.T) {
	dir := t.TempDir()
	_, err := Save(t.Context(), dir, Manual, begun(func() error { t.Error("it was begun"); return nil }), SaveOptions{Size: 1 << 60})
	if !errors.Is(err, ErrNoSpace) || !strings.Contains(err.Error(), "MB free") {
		t.Errorf("saved into a disk without room: %v", err)
	}
	empty(t, dir)
}

// TestFullDisk saves to a real file system that is too small: the save fails before it has taken the last of it, and leaves nothing.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=80m"); err != nil {
		t.Skipf("no small file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
	least := int64(1 << 60)
	_, err := Save(t.Context(), dir, Periodic, func(_ context.Context, w io.Writer) error {
		for {
			if _, err := w.Write(make([]byte, 256<<10)); err != nil {
				return err
			}
			least = min(least, engine.FreeBytes(dir))
		}
	}, SaveOptions{})
	if !errors.Is(err, ErrNoSpace) {
		t.Errorf("saved without end: %v", err)
	}
	if least < spareBytes || least > spareBytes+4*lookEvery {
		t.Errorf("%d MB were left free at the least, %d MB should be", least>>20, spareBytes>>20)
	}
	empty(t, dir)
	old := history(6, Periodic, time.Hour)
	fake(t, dir, old)
	if removed, err := MakeRoom(t.Context(), dir, 1<<30); err != nil || len(removed) > 0 {
		t.Errorf("%d were removed without a good one: %v", len(removed), err)
	}
}

// TestMakeRoom removes old periodic snapshots on a full disk, but no others and not the good one.
func TestMakeRoom(t *testing.T) {
	info, _ := saved(t)
	dir := filepath.Dir(info.Path)
	fake(t, dir, history(6, Periodic, time.Hour))
	fake(t, dir, history(2, Upgrade, time.Hour))
	removed, err := MakeRoom(t.Context(), dir, 1<<60)
	if err != nil || len(removed) != 6 {
		t.Fatalf("%d were removed: %v", len(removed), err)
	}
	if removed[0].Time != begin {
		t.Errorf("the first to go is of %s", removed[0].Time)
	}
	if left, err := collect(dir); err != nil || len(left) != 3 {
		t.Errorf("left are %v, %v", left, err)
	}
	if removed, err := MakeRoom(t.Context(), dir, 1); err != nil || len(removed) > 0 {
		t.Errorf("%d were removed where there is room: %v", len(removed), err)
	}
}

// TestDamagedSnapshotIsRefused holds that a snapshot that has changed is named and not used.
func TestDamagedSnapshotIsRefused(t *testing.T) {
	info, dir := saved(t)
	whole, err := os.ReadFile(info.Path)
	if err != nil {
		t.Fatal(err)
	}
	sector := make([]byte, 512)
	for name, content := range map[string][]byte{
		"one bit is wrong":        flipped(whole, len(whole)/2),
		"the sum is wrong":        flipped(whole, len(whole)-1),
		"it was cut off":          whole[:len(whole)-100],
		"a sector is missing":     append(append([]byte{}, whole[:4096]...), whole[4096+512:]...),
		"there is more behind it": append(append([]byte{}, whole...), sector...),
		"it has no sum":           whole[:len(whole)-sumSize],
		"it is empty":             {},
		"it is something else":    []byte(strings.Repeat("etcd", 200)),
	} {
		if err := os.WriteFile(info.Path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Verify(t.Context(), info.Path); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), info.Path) {
			t.Errorf("%s: verified: %v", name, err)
		}
		_, err := Restore(t.Context(), info.Path, dir, Options{NodeName: testNode, Aside: true, Log: discard()})
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), info.Path) {
			t.Errorf("%s: restored: %v", name, err)
		}
	}
	m, _ := openEngine(t, dir)
	if got := read(t, m); len(got) != 3 {
		t.Errorf("the store holds %v after restores that were refused", got)
	}
	besides(t, dir, "LOCK", "member", "seen")
}

func flipped(b []byte, at int) []byte {
	c := bytes.Clone(b)
	c[at] ^= 0x10
	return c
}

// besides fails when a store's directory holds anything but what it may, or when a restore has left something beside it.
func besides(t *testing.T, dir string, may ...string) {
	t.Helper()
	for _, path := range []string{placesOf(dir).building, placesOf(dir).restored} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is left behind", path)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.Contains(" "+strings.Join(may, " ")+" ", " "+e.Name()+" ") {
			t.Errorf("%s holds %s", dir, e.Name())
		}
	}
}

// TestSnapshotUnderLoad holds that a snapshot saved while many write is of one moment: of each writer it has all up to some write and nothing
// after it, and it has every write that was acknowledged before it began.
func TestSnapshotUnderLoad(t *testing.T) {
	dir := t.TempDir()
	m, end := openEngine(t, filepath.Join(dir, "store"))
	const writers = 16
	var acked [writers]int
	var mu sync.Mutex
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for w := range writers {
		running.Go(func() {
			for n := 1; ctx.Err() == nil; n++ {
				_, err := m.Txn(ctx, engine.Write{Key: fmt.Sprintf("/registry/w%02d/%06d", w, n), Expect: 0, Value: bytes.Repeat([]byte{'v'}, 1000)})
				if err != nil {
					return
				}
				mu.Lock()
				acked[w] = n
				mu.Unlock()
			}
		})
	}
	time.Sleep(300 * time.Millisecond)
	mu.Lock()
	before := acked
	mu.Unlock()
	info, err := Save(t.Context(), filepath.Join(dir, Dir), Manual, m.Snapshot, SaveOptions{})
	time.Sleep(50 * time.Millisecond)
	cancel()
	running.Wait()
	end()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), info.Path, filepath.Join(dir, "store"), Options{NodeName: testNode, Aside: true, Log: discard()}); err != nil {
		t.Fatal(err)
	}
	m, _ = openEngine(t, filepath.Join(dir, "store"))
	have := read(t, m)
	for w := range writers {
		n := 0
		for have[fmt.Sprintf("/registry/w%02d/%06d", w, n+1)] != "" {
			n++
		}
		prefix, count := fmt.Sprintf("/registry/w%02d/", w), 0
		for key := range have {
			if strings.HasPrefix(key, prefix) {
				count++
			}
		}
		if count != n || n < before[w] {
			t.Errorf("writer %d: %d in a row of %d, %d were acknowledged before", w, n, count, before[w])
		}
	}
	t.Logf("%d keys at revision %d", len(have), info.Revision)
}

// killed is what a process that ends itself in the middle of a restore or a save is told.
type killed struct{ Snapshot, Store, Step string }

const killedEnv = "NODEACTOR_TEST_KILLED"

// TestMain is that process when it is told so.
func TestMain(m *testing.M) {
	var k killed
	if json.Unmarshal([]byte(os.Getenv(killedEnv)), &k) != nil {
		os.Exit(m.Run())
	}
	die := func(step string) {
		if step == k.Step {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	var err error
	switch {
	case k.Step == "saving":
		_, err = Save(context.Background(), k.Store, Manual, begun(func() error { die(k.Step); return nil }), SaveOptions{})
	case k.Snapshot == "":
		err = Settle(k.Store, Options{Log: discard(), at: die})
	default:
		_, err = Restore(context.Background(), k.Snapshot, k.Store, Options{NodeName: testNode, Aside: true, Log: discard(), at: die})
	}
	fmt.Println(err)
	os.Exit(1)
}

// kill runs a process that ends at a step, and fails unless it did.
func kill(t *testing.T, k killed) {
	t.Helper()
	told, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killedEnv+"="+string(told))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the process was to be killed at %q: %v\n%s", k.Step, err, out)
	}
}

// TestKilledSaveIsSwept holds that the next save removes what a killed one has left, and nothing of one that runs.
func TestKilledSaveIsSwept(t *testing.T) {
	info, _ := saved(t)
	dir := filepath.Dir(info.Path)
	kill(t, killed{Store: dir, Step: "saving"})
	left, _ := filepath.Glob(filepath.Join(dir, unfinished))
	if len(left) != 1 {
		t.Fatalf("a killed save left %v", left)
	}
	if got, err := Newest(t.Context(), dir); err != nil || got != info {
		t.Errorf("the newest is %+v, %v", got, err)
	}
	_, err := Save(t.Context(), dir, Manual, begun(func() error {
		now, _ := filepath.Glob(filepath.Join(dir, unfinished))
		if len(now) != 1 || now[0] == left[0] {
			t.Errorf("unfinished are %v, left were %v", now, left)
		}
		sweep(dir)
		if still, _ := filepath.Glob(filepath.Join(dir, unfinished)); len(still) != 1 {
			t.Error("a file that is being written was swept")
		}
		return errSource
	}), SaveOptions{})
	if !errors.Is(err, errSource) {
		t.Error(err)
	}
}

// TestRestoreKilledAtEachStep kills a restore at each of its steps: the store is the old one or the new one, whole, and nothing is left.
func TestRestoreKilledAtEachStep(t *testing.T) {
	info, dir := saved(t)
	m, end := openEngine(t, dir)
	put(t, m, "/registry/configmaps/default/new", "later")
	end()
	for _, c := range []struct {
		step string
		keys int
	}{
		{"begin", 4}, {"built", 4}, {"floor raised", 4}, {"marked", 4}, {"ready", 4}, {"exchanged", 3}, {"put aside", 3},
	} {
		t.Run(c.step, func(t *testing.T) {
			at := filepath.Join(t.TempDir(), "store")
			if err := os.CopyFS(at, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			kill(t, killed{info.Path, at, c.step})
			settled(t, at, c.keys)
			aside, _ := filepath.Glob(at + ".before-restore-*")
			if want := 4 - c.keys; len(aside) != want {
				t.Errorf("stores put aside: %v, want %d", aside, want)
			}
			for _, path := range aside {
				old, end := openEngine(t, path)
				if got := read(t, old); len(got) != 4 {
					t.Errorf("the old store holds %v", got)
				}
				end()
			}
		})
	}
}

// settled ends a restore and looks at the store.
func settled(t *testing.T, dir string, keys int) {
	t.Helper()
	if err := Settle(dir, Options{Log: discard()}); err != nil {
		t.Fatal(err)
	}
	besides(t, dir, "LOCK", "member", "seen")
	m, end := openEngine(t, dir)
	defer end()
	if got := read(t, m); len(got) != keys {
		t.Errorf("the store holds %v, want %d keys", got, keys)
	}
	if keys == 3 && m.Revision() < revisionStep {
		t.Errorf("the restored store begins at revision %d", m.Revision())
	}
}

// TestRestoreWithoutExchange kills a restore on a file system that cannot exchange two directories in one step: there is a moment without a
// store, and Settle ends it, also when it is killed itself.
func TestRestoreWithoutExchange(t *testing.T) {
	for _, step := range []string{"moved aside", "moved in"} {
		t.Run(step, func(t *testing.T) {
			info, dir := saved(t)
			o := Options{NodeName: testNode, Aside: true, Log: discard()}.withDefaults()
			if _, err := build(t.Context(), Restored{Snapshot: info, Revision: info.Revision + revisionStep}, dir, o); err != nil {
				t.Fatal(err)
			}
			stop := errors.New(step)
			o.at = func(at string) {
				if at == step {
					panic(stop)
				}
			}
			func() {
				defer func() {
					if r := recover(); r != stop {
						t.Fatalf("it was to be stopped at %q: %v", step, r)
					}
				}()
				_, err := exchangeInSteps(dir, o)
				t.Fatalf("it went on: %v", err)
			}()
			settled(t, dir, 3)
			if aside, _ := filepath.Glob(dir + ".before-restore-*"); len(aside) != 1 {
				t.Errorf("stores put aside: %v", aside)
			}
		})
	}
}

// TestRestoreAgain holds that no restore begins at a revision that was handed out before: not when the same snapshot is restored twice, and not
// when nothing is left of the store in between.
func TestRestoreAgain(t *testing.T) {
	info, dir := saved(t)
	seen := int64(0)
	for range 3 {
		r, err := Restore(t.Context(), info.Path, dir, Options{NodeName: testNode, Aside: true, Log: discard()})
		if err != nil {
			t.Fatal(err)
		}
		m, end := openEngine(t, dir)
		if r.Revision <= seen || m.Revision() < r.Revision {
			t.Errorf("restored at %d, the store says %d, seen was %d", r.Revision, m.Revision(), seen)
		}
		for range 3 {
			seen = put(t, m, "/registry/configmaps/default/c0", "again")
		}
		end()
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Restore(t.Context(), info.Path, dir, Options{NodeName: testNode, MinRevision: seen + 5*revisionStep, Log: discard()})
	if err != nil || r.Revision <= seen+5*revisionStep {
		t.Errorf("restored at %d: %v", r.Revision, err)
	}
}

// TestRestoreWithoutRoom holds that a restore that has no room changes nothing.
func TestRestoreWithoutRoom(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	info, _ := saved(t)
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=20m"); err != nil {
		t.Skipf("no small file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
	_, err := Restore(t.Context(), info.Path, filepath.Join(dir, "store"), Options{NodeName: testNode, Log: discard()})
	if !errors.Is(err, ErrNoSpace) {
		t.Errorf("restored: %v", err)
	}
	besides(t, filepath.Join(dir, "store"), "LOCK")
}

// TestStream holds that what is streamed is a snapshot, that one that is saved from a stream is the same, and that a stream that was cut off
// or changed on its way is noticed.
func TestStream(t *testing.T) {
	info, dir := saved(t)
	source, size, err := Stopped(dir)
	if err != nil || size == 0 {
		t.Fatalf("a stopped store of %d bytes: %v", size, err)
	}
	var stream bytes.Buffer
	if err := Stream(t.Context(), source, &stream); err != nil {
		t.Fatal(err)
	}
	send := func(b []byte) Source {
		return func(_ context.Context, w io.Writer) error {
			for len(b) > 0 {
				n, err := w.Write(b[:min(len(b), 1000)])
				if err != nil {
					return err
				}
				b = b[n:]
			}
			return nil
		}
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	got, err := WriteFile(t.Context(), path, send(stream.Bytes()), SaveOptions{})
	if err != nil || got.Revision != info.Revision {
		t.Fatalf("saved %+v, %v", got, err)
	}
	if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, stream.Bytes()) {
		t.Errorf("the file is not what was streamed: %v", err)
	}
	if v, err := Verify(t.Context(), path); err != nil || v.Revision != info.Revision || v.Reason != "" {
		t.Errorf("verified %+v, %v", v, err)
	}
	for name, b := range map[string][]byte{
		"cut off":               stream.Bytes()[:stream.Len()/2+1],
		"cut off at the sum":    stream.Bytes()[:stream.Len()-1],
		"changed":               flipped(stream.Bytes(), 100),
		"cut off at a page":     stream.Bytes()[:4096],
		"cut off at the middle": stream.Bytes()[:stream.Len()/8192*4096],
	} {
		if _, err := WriteFile(t.Context(), path, send(b), SaveOptions{}); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if v, err := Verify(t.Context(), path); err != nil || v.Revision != info.Revision {
		t.Errorf("a save that failed has changed the file: %+v, %v", v, err)
	}
}

// TestStoppedStore holds that a stopped store is read as it is, a running one is not, and an absent one is told from a damaged one.
func TestStoppedStore(t *testing.T) {
	info, dir := saved(t)
	save := func() (Info, error) {
		source, size, err := Stopped(dir)
		if err != nil {
			return Info{}, err
		}
		return Save(t.Context(), filepath.Join(t.TempDir(), Dir), Upgrade, source, SaveOptions{Size: size})
	}
	if got, err := save(); err != nil || got.Revision != info.Revision {
		t.Errorf("saved %+v, %v", got, err)
	}
	if n, err := Missing(dir); err != nil || n != 0 {
		t.Errorf("after an orderly stop %d entries are missing: %v", n, err)
	}
	_, end := openEngine(t, dir)
	if _, err := save(); !errors.Is(err, ErrLocked) {
		t.Errorf("a running store: %v", err)
	}
	end()
	db := engine.DatabaseFile(dir)
	if err := os.Truncate(db, 8192); err != nil {
		t.Fatal(err)
	}
	if _, err := save(); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), db) {
		t.Errorf("a damaged store: %v", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := save(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no store: %v", err)
	}
}

// TestStoresPutAsideKeepTheirNames: two restores that end in one second leave two stores.
func TestStoresPutAsideKeepTheirNames(t *testing.T) {
	name := filepath.Join(t.TempDir(), "store.before-restore-20260102T120000Z")
	for _, want := range []string{name, name + "-2", name + "-3"} {
		if got := unused(name); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if err := os.Mkdir(want, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}
