package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/test/daemon"
)

const (
	page = 4096
	// defaultCases is what the test command runs.
	defaultCases = 30
	// verdictLimit is how long a start on damaged files may take to end either way.
	verdictLimit = 30 * time.Second
)

// harm is one way in which a file comes back from a power cut. Those that take away what was on disk already may cost
// the log its end: nothing that is left tells of it.
type harm struct {
	name string
	do   func(f *os.File, size int64, rnd *rand.Rand) error
	// mild harms only touch what was not yet on disk.
	mild bool
}

var harms = []harm{
	{"truncated", func(f *os.File, size int64, rnd *rand.Rand) error {
		used, err := inUse(f, size)
		if err != nil {
			return err
		}
		return f.Truncate(rnd.Int64N(max(used, 1)))
	}, false},
	{"emptied", func(f *os.File, _ int64, _ *rand.Rand) error { return f.Truncate(0) }, false},
	{"last page zeroed", func(f *os.File, size int64, _ *rand.Rand) error { return overwrite(f, size, make([]byte, page)) }, false},
	{"last page torn", func(f *os.File, size int64, rnd *rand.Rand) error { return overwrite(f, size, noise(rnd)) }, false},
	{"half a page beyond", func(f *os.File, size int64, rnd *rand.Rand) error {
		used, err := inUse(f, size)
		if err == nil {
			_, err = f.WriteAt(noise(rnd), used)
		}
		return err
	}, true},
}

func noise(rnd *rand.Rand) []byte {
	b := make([]byte, page/2)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

// overwrite replaces the last bytes that are in use.
func overwrite(f *os.File, size int64, b []byte) error {
	used, err := inUse(f, size)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, max(used-int64(len(b)), 0))
	return err
}

// inUse is the size up to the last page that is not all zeros: state files are allocated ahead.
func inUse(f *os.File, size int64) (int64, error) {
	buf := make([]byte, page)
	for used := size; used > 0; {
		at := max(used-page, 0)
		n, err := f.ReadAt(buf[:used-at], at)
		if err != nil {
			return 0, err
		}
		if slices.ContainsFunc(buf[:n], func(c byte) bool { return c != 0 }) {
			return used, nil
		}
		used = at
	}
	return 0, nil
}

// stateFiles are the files that a start depends on, relative to the data directory.
func stateFiles(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasSuffix(path, "ock") || strings.HasSuffix(path, "LOCK") {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err == nil && !strings.HasPrefix(name, "bin/") && !daemon.IsOwner(name) {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestDamagedFiles damages one state file of a node that was killed, and starts it: it starts with everything that was
// acknowledged, or refuses with the file's name and the way out. It never hangs and never panics.
func TestDamagedFiles(t *testing.T) {
	cases, seed := setting("CRASH_CASES", defaultCases), setting("CRASH_SEED", uint64(time.Now().UnixNano()))
	t.Logf("CRASH_CASES=%d CRASH_SEED=%d", cases, seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	n := newNode(t)
	n.launch()
	client, err := n.ready()
	if err != nil {
		t.Fatal(err)
	}
	all := []*writer{{name: "a"}, {name: "b"}, {name: "c"}}
	disturb(n, client, all, time.Second)
	pristine := n.dir + daemon.CopySuffix
	t.Cleanup(func() { os.RemoveAll(pristine) })
	replace(t, n.dir, pristine)
	files := stateFiles(t, pristine)
	outcomes := map[string]int{}
	for i := range int(cases) {
		// Every file gets every harm before any gets it twice.
		file, h := files[i%len(files)], harms[(i/len(files)+i)%len(harms)]
		replace(t, pristine, n.dir)
		damage(t, filepath.Join(n.dir, file), h, rnd)
		verdict, err := n.judge(t, file, h, all)
		n.kill()
		outcomes[verdict]++
		t.Logf("%s %s: %s", file, h.name, verdict)
		if err != nil {
			t.Errorf("case %d: %s %s: %v", i, file, h.name, err)
		}
	}
	t.Logf("outcomes: %v", outcomes)
	replace(t, pristine, n.dir)
}

// replace makes to a copy of from, holes included.
func replace(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-a", "--sparse=always", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func damage(t *testing.T, path string, h harm, rnd *rand.Rand) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = h.do(f, info.Size(), rnd)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// judge starts the node on its damaged directory.
func (n *node) judge(t *testing.T, file string, h harm, all []*writer) (verdict string, err error) {
	n.launch()
	end := time.Now().Add(verdictLimit)
	for time.Now().Before(end) {
		select {
		case <-n.exited:
			code := n.cmd.ProcessState.ExitCode()
			n.cmd = nil
			return "refused", n.refusal(file, code)
		case <-time.After(50 * time.Millisecond):
		}
		client, err := n.client()
		if err != nil || healthy(client) != nil {
			continue
		}
		if lost := verify(t, client, copies(all)); len(lost) > 0 {
			if strings.HasSuffix(file, ".wal") && !h.mild {
				return "started without the end of the log", nil
			}
			return "started with losses", errors.New(strings.Join(lost, "; "))
		}
		return "started", nil
	}
	return "hung", fmt.Errorf("neither started nor refused within %s: %s", verdictLimit, n.tail(5))
}

// copies keeps what a look at a damaged store teaches the writers from the next case.
func copies(all []*writer) (out []*writer) {
	for _, w := range all {
		c := *w
		out = append(out, &c)
	}
	return out
}

// refusal judges what the daemon said when it ended.
func (n *node) refusal(file string, code int) error {
	b, err := os.ReadFile(n.logPath())
	if err != nil {
		return err
	}
	said := string(b)
	switch last := n.tail(1); {
	case strings.Contains(said, "\ngoroutine "):
		return fmt.Errorf("it panicked: %s", n.tail(30))
	case code != 1:
		return fmt.Errorf("the exit code is %d: %s", code, last)
	case !strings.Contains(last, filepath.Base(file)) && !strings.Contains(last, filepath.Base(filepath.Dir(file))):
		return fmt.Errorf("the last line does not name the file: %s", last)
	}
	return nil
}
