package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
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

	"github.com/nodeactor/nodeactor/supervision"
)

var quiet = slog.New(slog.DiscardHandler)

// written makes a store with n keys, as a kill leaves it: the database lacks the end, the log has it.
func written(t *testing.T, n int) (dir string, rev int64) {
	t.Helper()
	return writtenTo(t, t.TempDir(), n)
}

// writtenTo is written with a store that there may be already; live is closed when it returns.
func writtenTo(t *testing.T, live string, n int) (dir string, rev int64) {
	t.Helper()
	m := openAt(t, live)
	ctx, cancel := context.WithCancel(context.Background())
	watching := make(chan error, 1)
	after := m.Revision() // what was before may be compacted
	go func() { watching <- m.Watch(ctx, First, Last, after, func(Batch) error { return nil }) }()
	var wg sync.WaitGroup
	const writers = 64
	for w := range writers {
		wg.Go(func() {
			for i := w; i < n; i += writers {
				put(t, m, fmt.Sprintf("/k/%06d", i), "v", 0)
			}
		})
	}
	wg.Wait()
	rev = put(t, m, "/last", "v", 0).Revision
	for limit := time.Now().Add(10 * time.Second); readSeen(filepath.Join(live, seenFile)) < rev; time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("the newest revision is not recorded: %d of %d", readSeen(filepath.Join(live, seenFile)), rev)
		}
	}
	for found := dbBad; found != dbGood; { // the copy may fall into a commit
		dir = filepath.Join(t.TempDir(), "store")
		if err := os.CopyFS(dir, os.DirFS(live)); err != nil {
			t.Fatal(err)
		}
		s, err := look(dir, quiet)
		if err != nil {
			t.Fatal(err)
		}
		found = s.db
	}
	cancel()
	<-watching
	if err := m.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	return dir, rev
}

// reopen opens a damaged store.
func reopen(dir string) (*Member, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return Open(ctx, Config{Dir: dir, NodeName: "n", Clock: supervision.RealClock(), Log: quiet})
}

// mustHave opens a damaged store, which has to have everything.
func mustHave(t *testing.T, dir string, rev int64, keys int) {
	t.Helper()
	m, err := reopen(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close(context.Background()) }()
	page, err := m.Range(context.Background(), "/k/", "/k0", 0, 1)
	if err != nil || page.Count != int64(keys) || page.Revision != rev {
		t.Fatalf("%d keys at revision %d, want %d at %d: %v", page.Count, page.Revision, keys, rev, err)
	}
	if res := put(t, m, "/after", "v", 0); !res.Done || res.Revision != rev+1 {
		t.Errorf("the next write: %+v", res)
	}
}

// mustRefuse opens a damaged store, which has to be refused with the file's name, and again the next time.
func mustRefuse(t *testing.T, dir, file string) {
	t.Helper()
	for range 2 {
		m, err := reopen(dir)
		if err == nil {
			_ = m.Close(context.Background())
			t.Fatalf("it was opened, %s is damaged", file)
		}
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), file) {
			t.Fatalf("%s: %v", file, err)
		}
	}
}

func scribble(t *testing.T, path string, at int64, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}

// kept are the files that were put aside.
func kept(dir string) []string {
	all, _ := filepath.Glob(filepath.Join(dir, asideDir, "*"))
	return all
}

func lastLog(t *testing.T, dir string) (path string, used int64) {
	t.Helper()
	all := segments(dir)
	path = all[len(all)-1]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, int64(len(strings.TrimRight(string(b), "\x00")))
}

// TestP21_DatabaseIsMadeFromAWholeLog: whatever became of the database, a log that goes back to the beginning has it all.
func TestP21_DatabaseIsMadeFromAWholeLog(t *testing.T) {
	dir, rev := written(t, 100)
	for name, harm := range map[string]func(db string){
		"gone":      func(db string) { _ = os.Remove(db) },
		"empty":     func(db string) { _ = os.Truncate(db, 0) },
		"truncated": func(db string) { _ = os.Truncate(db, 8192) },
		"noise":     func(db string) { _ = os.WriteFile(db, []byte(strings.Repeat("noise", 9000)), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			copied := filepath.Join(t.TempDir(), "store")
			if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			harm(DatabaseFile(copied))
			mustHave(t, copied, rev, 100)
			if n := len(kept(copied)); (n == 1) != (name != "gone") {
				t.Errorf("%d files were kept", n)
			}
		})
	}
}

// TestP21_TornLastTransactionIsRedoneFromTheLog: the older meta page, and the log for what is newer.
func TestP21_TornLastTransactionIsRedoneFromTheLog(t *testing.T) {
	dir, rev := written(t, 100)
	db := DatabaseFile(dir)
	newestRoot := tearLast(t, db)
	s, err := look(dir, quiet)
	if err != nil || s.db != dbOlder || s.decide(dir).do != revert {
		t.Fatalf("the last transaction was torn at page %d: %+v, %v", newestRoot, s, err)
	}
	mustHave(t, dir, rev, 100)
	if len(kept(dir)) != 1 {
		t.Errorf("kept: %v", kept(dir))
	}
}

// TestP21_DamagedDatabaseAfterARestore: after a restore the revision is far ahead of the entries of the log, which is no fault of the log.
func TestP21_DamagedDatabaseAfterARestore(t *testing.T) {
	const bump, keys = 2_000_000_000, 50
	dir := restoredStore(t, bump)
	killed, rev := writtenTo(t, dir, keys)
	if rev < bump {
		t.Fatalf("revision %d after a restore with %d more", rev, bump)
	}
	for how, from := range map[string]string{"closed": dir, "killed": killed} {
		for name, harm := range map[string]func(db string){
			"gone":  func(db string) { _ = os.Remove(db) },
			"empty": func(db string) { _ = os.Truncate(db, 0) },
			"metas": func(db string) { scribble(t, db, 0, make([]byte, 4*os.Getpagesize())) },
			"pages": func(db string) { scribblePages(t, db) },
		} {
			for _, short := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s, log short=%t", how, name, short), func(t *testing.T) {
					copied := filepath.Join(t.TempDir(), "store")
					if err := os.CopyFS(copied, os.DirFS(from)); err != nil {
						t.Fatal(err)
					}
					db := DatabaseFile(copied)
					whole, err := os.ReadFile(db)
					if err != nil {
						t.Fatal(err)
					}
					path, used := lastLog(t, copied)
					if short {
						if err := os.Truncate(path, used/2); err != nil {
							t.Fatal(err)
						}
					}
					harm(db)
					mustRefuse(t, copied, db+" is damaged")
					if _, err := reopen(copied); errors.Is(err, errBehind) || strings.Contains(err.Error(), ".wal") {
						t.Errorf("the log is blamed: %v", err)
					}
					if err := os.WriteFile(db, whole, 0o600); err != nil {
						t.Fatal(err)
					}
					if short { // now that it can be told
						mustRefuse(t, copied, path)
						return
					}
					mustHave(t, copied, rev, keys)
				})
			}
		}
	}
}

// scribblePages overwrites all pages of a database but its two meta pages.
func scribblePages(t *testing.T, db string) {
	t.Helper()
	info, err := os.Stat(db)
	if err != nil {
		t.Fatal(err)
	}
	metas := int64(2 * os.Getpagesize())
	scribble(t, db, metas, []byte(strings.Repeat("n", int(info.Size()-metas))))
}

// restoredStore makes a store from a snapshot of another one, as a restore does.
func restoredStore(t *testing.T, bump int64) (dir string) {
	t.Helper()
	m := openAt(t, t.TempDir())
	put(t, m, "/before", "v", 0)
	var b bytes.Buffer
	if err := errors.Join(m.Snapshot(context.Background(), &b), m.Close(context.Background())); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b.Bytes())
	file := filepath.Join(t.TempDir(), "snapshot")
	if err := os.WriteFile(file, append(b.Bytes(), sum[:]...), 0o600); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "restored")
	done, err := Rebuild(context.Background(), RebuildConfig{File: file, Dir: dir, NodeName: "n", Bump: bump, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	<-done
	return dir
}

// TestP21_RepairSaysWhy: a repair of a database that is not there says so.
func TestP21_RepairSaysWhy(t *testing.T) {
	dir, _ := written(t, 10)
	if err := os.Remove(DatabaseFile(dir)); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	if _, err := mend(Config{Dir: dir, NodeName: "n", Clock: supervision.RealClock(), Log: slog.New(slog.NewTextHandler(&said, nil))}); err != nil {
		t.Fatal(err)
	}
	if s := said.String(); !strings.Contains(s, `why="it is missing"`) || !strings.Contains(s, `kept=""`) {
		t.Errorf("it says: %s", s)
	}
}

// tearLast commits one more transaction to a database and tears its root page.
func tearLast(t *testing.T, path string) (root uint64) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("meta")).Put([]byte("more"), []byte("x")) })
	if err != nil {
		t.Fatal(err)
	}
	if err := db.View(func(tx *bbolt.Tx) error { root = uint64(tx.Cursor().Bucket().Root()); return nil }); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	scribble(t, path, int64(root)*int64(os.Getpagesize()), make([]byte, 512))
	return root
}

// TestP21_UnfinishedLastRecordIsCutOff: it was never acknowledged.
func TestP21_UnfinishedLastRecordIsCutOff(t *testing.T) {
	dir, rev := written(t, 100)
	path, used := lastLog(t, dir)
	// The head of a record of 100 bytes, and nothing of it.
	scribble(t, path, (used+7)/8*8, []byte{100, 0, 0, 0, 0, 0, 0, 0x84})
	if err := os.Truncate(path, (used+7)/8*8+40); err != nil {
		t.Fatal(err)
	}
	mustHave(t, dir, rev, 100)
}

// TestP21_LostEndOfTheLogIsFound: a log that ends before what was acknowledged is not taken for one that ends there.
func TestP21_LostEndOfTheLogIsFound(t *testing.T) {
	for name, harm := range map[string]func(path string, used int64) error{
		"zeroed":    func(path string, used int64) error { return zero(path, used-64, 64) },
		"truncated": func(path string, used int64) error { return os.Truncate(path, used-64) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := written(t, 100)
			path, used := lastLog(t, dir)
			if err := harm(path, used); err != nil {
				t.Fatal(err)
			}
			mustRefuse(t, dir, path)
		})
	}
}

func zero(path string, at, n int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(make([]byte, n), at)
	return err
}

// TestP21_VanishedStoreIsNoEmptyStore: when the files are gone and something was acknowledged, nothing begins anew.
func TestP21_VanishedStoreIsNoEmptyStore(t *testing.T) {
	dir, _ := written(t, 10)
	if err := os.RemoveAll(filepath.Join(dir, memberDir)); err != nil {
		t.Fatal(err)
	}
	mustRefuse(t, dir, logDir(dir))
}

// TestP21_CrashInTheVeryFirstStart: a log without an entry would never elect a leader.
func TestP21_CrashInTheVeryFirstStart(t *testing.T) {
	dir, _ := written(t, 0)
	path, _ := lastLog(t, dir)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := readJournal(dir)
	if err != nil || r.last == 0 {
		t.Fatal(r, err)
	}
	// The head of the log: its checksum, its metadata, its first mark.
	const records = 3
	at := int64(0)
	for range records {
		size := int64(b[at]) | int64(b[at+1])<<8
		if b[at+7]&0x80 != 0 {
			size += int64(b[at+7] & 7)
		}
		at += 8 + size
	}
	if err := errors.Join(zero(path, at, int64(len(b))-at), os.Remove(DatabaseFile(dir)), os.Remove(filepath.Join(dir, seenFile))); err != nil {
		t.Fatal(err)
	}
	if r, err = readJournal(dir); err != nil || r.last != 0 || r.damagedAt() >= 0 {
		t.Fatalf("the log was not emptied: %+v, %v", r, err)
	}
	m, err := reopen(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close(context.Background()) }()
	put(t, m, "/a", "1", 0)
}

// TestP21_LogWithRaftSnapshots: what can be mended when the log does not go back to the beginning.
func TestP21_LogWithRaftSnapshots(t *testing.T) {
	const keys = snapshotEvery + 2000
	dir, rev := written(t, keys)
	j, err := readJournal(dir)
	if err != nil || j.base == 0 || j.damagedAt() >= 0 {
		t.Fatalf("the log has no mark: %+v, %v", j, err)
	}
	again := func() string {
		copied := filepath.Join(t.TempDir(), "store")
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		return copied
	}
	t.Run("database torn", func(t *testing.T) {
		dir := again()
		scribble(t, DatabaseFile(dir), 0, make([]byte, 4*os.Getpagesize()))
		mustRefuse(t, dir, DatabaseFile(dir))
	})
	t.Run("database gone", func(t *testing.T) {
		dir := again()
		_ = os.Remove(DatabaseFile(dir))
		mustRefuse(t, dir, DatabaseFile(dir))
	})
	t.Run("log damaged", func(t *testing.T) {
		dir := again()
		path, used := lastLog(t, dir)
		scribble(t, path, used/2, []byte("noise noise noise"))
		mustRefuse(t, dir, path)
	})
	t.Run("log gone", func(t *testing.T) {
		dir := again()
		_ = os.RemoveAll(logDir(dir))
		mustRefuse(t, dir, logDir(dir))
	})
	t.Run("record of revisions damaged", func(t *testing.T) {
		dir := again()
		if err := os.WriteFile(filepath.Join(dir, seenFile), []byte(strings.Repeat("noise", 10)), 0o600); err != nil {
			t.Fatal(err)
		}
		mustHave(t, dir, rev, keys)
	})
	t.Run("whole", func(t *testing.T) { mustHave(t, again(), rev, keys) })
}

// TestP21_SpareSegmentIsPutAside: damage in a part of the log that the database has had for long costs nothing.
func TestP21_SpareSegmentIsPutAside(t *testing.T) {
	live := t.TempDir()
	m := openAt(t, live)
	value := strings.Repeat("x", 4000)
	var wg sync.WaitGroup
	for w := range 64 {
		wg.Go(func() {
			for range (snapshotEvery + 1000) / 64 {
				put(t, m, fmt.Sprintf("/k/%d", w), value, AnyRevision)
			}
		})
	}
	wg.Wait()
	rev := m.Revision()
	if err := m.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	j, err := readJournal(live)
	if err != nil || !j.spare(0) {
		t.Fatalf("the log has no spare segment: %+v, %v", j, err)
	}
	scribble(t, j.segments[0].path, 4000, []byte("noise"))
	mustHave(t, live, rev, 64)
	if len(kept(live)) != 1 {
		t.Errorf("kept: %v", kept(live))
	}
}
