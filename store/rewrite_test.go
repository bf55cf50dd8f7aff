package store_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/store/engine"
)

const (
	// rewriteDirEnv makes TestRewriteUntilKilled write to the directory it names until it is killed; rewriteRoundEnv is its round.
	rewriteDirEnv   = "NODEACTOR_TEST_REWRITE_DIR"
	rewriteRoundEnv = "NODEACTOR_TEST_REWRITE_ROUND"
	// rewriteKillsEnv is how many times TestP21_KillDuringRewrite kills.
	rewriteKillsEnv = "NODEACTOR_REWRITE_KILLS"
	rewriteKills    = 5
	// readLimit is what a read from memory may take on a busy machine while the file is rewritten.
	readLimit = time.Second
)

// waste writes and deletes so many MB.
func waste(t *testing.T, s *store.Store, mb int) {
	t.Helper()
	value := strings.Repeat("x", 1<<20)
	for i := range mb {
		put(t, s, fmt.Sprintf("/registry/configmaps/waste/%d", i), value)
	}
	for i := range mb {
		remove(t, s, fmt.Sprintf("/registry/configmaps/waste/%d", i))
	}
	if err := s.CompactTo(context.Background(), s.Revision()); err != nil {
		t.Fatal(err)
	}
}

// traffic writes and reads until it is stopped.
type traffic struct {
	stop    chan struct{}
	wg      sync.WaitGroup
	writes  atomic.Int64
	slowest atomic.Int64 // read, in nanoseconds
}

func drive(t *testing.T, s *store.Store) *traffic {
	f := &traffic{stop: make(chan struct{})}
	f.loop(func() {
		if err := attempt(s, engine.Write{Key: "/registry/configmaps/live/one", Expect: engine.AnyRevision, Value: []byte("1")}); err != nil {
			t.Errorf("write: %v", err)
		}
		f.writes.Add(1)
	})
	f.loop(func() {
		begin := time.Now()
		s.List("/registry/configmaps/")
		_ = s.Healthy(context.Background())
		if took := int64(time.Since(begin)); took > f.slowest.Load() {
			f.slowest.Store(took)
		}
		time.Sleep(time.Millisecond)
	})
	return f
}

func (f *traffic) loop(do func()) {
	f.wg.Go(func() {
		for {
			select {
			case <-f.stop:
				return
			default:
				do()
			}
		}
	})
}

func (f *traffic) end() { close(f.stop); f.wg.Wait() }

// TestP23_RewriteUnderTraffic: a file that is mostly holes is rewritten while the store is in use: no write fails, reads go on, the disk
// has its space back, and it is not done again and again.
func TestP23_RewriteUnderTraffic(t *testing.T) {
	s := openStore(t, t.TempDir())
	put(t, s, "/registry/configmaps/live/two", "2")
	waste(t, s, 80)
	before := s.Stats()
	f := drive(t, s)
	for range 3 {
		time.Sleep(200 * time.Millisecond)
		if err := s.Maintain(context.Background()); err != nil {
			t.Error(err)
		}
	}
	f.end()
	st := s.Stats()
	t.Logf("file %d MB, then %d KB; %d writes, the slowest read took %s, the rewrite %s", before.DBSize>>20, st.DBSize>>10, f.writes.Load(),
		time.Duration(f.slowest.Load()).Round(time.Microsecond), st.DefragTime.Round(time.Millisecond))
	if st.Defrags != 1 || st.FailedDefrags != 0 {
		t.Errorf("%d rewrites, %d failed", st.Defrags, st.FailedDefrags)
	}
	if st.DBSize > 8<<20 || st.Reclaimed < 64<<20 {
		t.Errorf("file %d bytes, %d given back", st.DBSize, st.Reclaimed)
	}
	if time.Duration(f.slowest.Load()) > readLimit {
		t.Errorf("a read took %s", time.Duration(f.slowest.Load()))
	}
	if item, ok := s.Get("/registry/configmaps/live/two"); !ok || string(item.Value) != "2" {
		t.Error("an object is gone")
	}
}

// TestRewriteNeedsRoom: no rewrite begins on a disk that has no room for the copy.
func TestRewriteNeedsRoom(t *testing.T) {
	dir := smallDisk(t, 120)
	s := openStore(t, dir+"/store")
	for i := range 30 {
		put(t, s, fmt.Sprintf("/registry/configmaps/a/%d", i), strings.Repeat("x", 1<<20))
	}
	time.Sleep(time.Second) // the database writes behind the log
	must := s.Stats().DBInUse
	if must < 25<<20 {
		t.Fatalf("only %d bytes are in use", must)
	}
	ballast(t, dir, 40<<20)
	_, err := s.Backend().Engine.(*engine.Seat).Defragment(context.Background())
	if err == nil || !strings.Contains(err.Error(), "free") {
		t.Fatalf("it was rewritten, or not for want of room: %v", err)
	}
	put(t, s, "/registry/configmaps/a/after", "1")
}

// ballast fills the disk of dir but for left bytes.
func ballast(t *testing.T, dir string, left int64) {
	t.Helper()
	free := freeBytes(t, dir)
	if free <= left {
		return
	}
	if err := os.WriteFile(dir+"/ballast", make([]byte, free-left), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestP21_KillDuringRewrite: a process that is killed at any moment of a rewrite loses nothing.
func TestP21_KillDuringRewrite(t *testing.T) {
	kills := rewriteKills
	if v := os.Getenv(rewriteKillsEnv); v != "" {
		var err error
		if kills, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	acked := map[string]bool{}
	amid := 0
	for round := range kills {
		if rewriteAndKill(t, dir, round, acked) {
			amid++
		}
		s, err := tryOpen(dir)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		for key := range acked {
			if item, ok := s.Get(key); !ok || string(item.Value) != key {
				t.Fatalf("round %d: %s was acknowledged and is gone", round, key)
			}
		}
		closeStore(t, s)
		if left := temporary(t, dir); len(left) > 0 {
			t.Errorf("round %d: the start has left %v", round, left)
		}
	}
	t.Logf("%d acknowledged writes survived %d kills, %d of them amid a rewrite", len(acked), kills, amid)
	if amid == 0 {
		t.Error("no kill was amid a rewrite")
	}
}

// rewriteAndKill kills a process some time after its third rewrite has begun; it tells whether that was amid one.
func rewriteAndKill(t *testing.T, dir string, round int, acked map[string]bool) (amid bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestRewriteUntilKilled$")
	cmd.Env = append(os.Environ(), rewriteDirEnv+"="+dir, fmt.Sprintf("%s=%d", rewriteRoundEnv, round))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	begun := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch word, key, _ := strings.Cut(lines.Text(), " "); word {
		case "acked":
			acked[key] = true
		case "begin":
			amid = true
			if begun++; begun == 3 {
				time.AfterFunc(rand.N(100*time.Millisecond), func() { _ = cmd.Process.Kill() })
			}
		case "end":
			amid = false
		}
	}
	if err := cmd.Wait(); begun < 3 {
		t.Fatalf("the writer ended early: %v", err)
	}
	return amid
}

// TestRewriteUntilKilled is the process that TestP21_KillDuringRewrite kills.
func TestRewriteUntilKilled(t *testing.T) {
	dir := os.Getenv(rewriteDirEnv)
	if dir == "" {
		t.Skip("skipped: it is a part of TestP21_KillDuringRewrite")
	}
	s, err := tryOpen(dir)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	say := func(line string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(line)
	}
	for i := range 8 {
		go func() {
			for n := 0; ; n++ {
				key := fmt.Sprintf("/registry/pods/round-%s/%d-%d", os.Getenv(rewriteRoundEnv), i, n)
				if err := attempt(s, engine.Write{Key: key, Value: []byte(key)}); err != nil {
					fmt.Fprintln(os.Stderr, "cannot write", key, err)
					os.Exit(1)
				}
				say("acked " + key)
			}
		}()
	}
	for i := 0; ; i++ {
		put(t, s, fmt.Sprintf("/registry/configmaps/a/%d", i%32), strings.Repeat("x", 1<<20))
		say("begin")
		if _, err := s.Backend().Engine.(*engine.Seat).Defragment(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "cannot rewrite", err)
			os.Exit(1)
		}
		say("end")
		time.Sleep(20 * time.Millisecond)
	}
}

// temporary are the files of a rewrite that was not finished.
func temporary(t *testing.T, dir string) (left []string) {
	t.Helper()
	entries, err := os.ReadDir(dir + "/member/snap")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "db.tmp") {
			left = append(left, e.Name())
		}
	}
	return left
}
