package operators

import (
	"bufio"
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

	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/actors/operator/storage"
)

// patience bounds waits whose length is not what is being tested.
const patience = 90 * time.Second

// fleet is some processes on one store, and what they have told.
type fleet struct {
	t      *testing.T
	dir    string
	silent bool

	mu sync.Mutex
	// tended is who has had an accepted effect on a manifest under the highest epoch.
	tended map[string]tending
	// answered counts the effects that were accepted, as far as their processes could tell.
	answered map[at]int
	// refused and unknown count other answers.
	refused, unknown int

	changed chan struct{}
	procs   []*proc
}

// at is an epoch of a manifest.
type at struct {
	manifest string
	epoch    uint64
}

// tending is the first effect under an epoch.
type tending struct {
	by    *proc
	epoch uint64
	at    time.Time
}

type proc struct {
	of   *fleet
	node string
	cmd  *exec.Cmd
	over chan struct{}
	err  error
}

// newFleet makes a store with manifests in it, that nobody tends yet.
func newFleet(t *testing.T, manifests int, silent bool) *fleet {
	f := &fleet{t: t, dir: t.TempDir(), silent: silent, tended: map[string]tending{}, answered: map[at]int{}, changed: make(chan struct{})}
	store, err := storage.OpenShared(f.store())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	nothing := operator.Func[Job](nil)
	jobs, err := operator.NewControlPlane(nothing, operator.OperatorConfig{}, store)
	if err != nil {
		t.Fatal(err)
	}
	for i := range manifests {
		if err := jobs.AddManifest(t.Context(), fmt.Sprintf("m%04d", i), Job{Number: i}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(f.killAll)
	return f
}

func (f *fleet) store() string { return filepath.Join(f.dir, "store") }

// start runs another process.
func (f *fleet) start(node string) *proc {
	f.t.Helper()
	p := &proc{of: f, node: node, over: make(chan struct{})}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), envDir+"="+f.store(), envNode+"="+node, "GOMAXPROCS=2")
	if f.silent {
		p.cmd.Env = append(p.cmd.Env, envSilent+"=1")
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.Create(filepath.Join(f.dir, node+".log"))
	if err != nil {
		f.t.Fatal(err)
	}
	p.cmd.Stderr = log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.mu.Lock()
	f.procs = append(f.procs, p)
	f.mu.Unlock()
	go p.listen(out, log)
	return p
}

// listen takes what a process tells until it ends.
func (p *proc) listen(out io.Reader, log io.Closer) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		p.heard(lines.Text(), time.Now())
	}
	p.err = p.cmd.Wait()
	_ = log.Close()
	close(p.over)
}

func (p *proc) heard(line string, when time.Time) {
	var word, manifest, holder string
	var epoch uint64
	_, err := fmt.Sscan(line, &word, &manifest, &epoch, &holder)
	f := p.of
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err == nil && word == "did":
		f.answered[at{manifest, epoch}]++
		if f.tended[manifest].epoch < epoch {
			f.tended[manifest] = tending{p, epoch, when}
		}
	case err == nil && word == "refused":
		f.refused++
	case err == nil && word == "unknown":
		f.unknown++
	default:
		f.t.Errorf("%s says %q", p.node, line)
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// await returns when what was told satisfies the condition, which is called under the lock.
func (f *fleet) await(what string, within time.Duration, holds func() bool) {
	f.t.Helper()
	late := time.After(within)
	for {
		f.mu.Lock()
		ok, changed := holds(), f.changed
		f.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-late:
			f.t.Fatalf("after %s it is not so that %s\n%s", within, what, f.state())
		}
	}
}

// state is what was told, and the ends of the logs.
func (f *fleet) state() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b strings.Builder
	for _, p := range f.procs {
		log, _ := os.ReadFile(filepath.Join(f.dir, p.node+".log"))
		fmt.Fprintf(&b, "%s tends %d of %d: %s\n", p.node, len(f.of(p)), len(f.tended), log[max(0, len(log)-1000):])
	}
	return b.String()
}

// of are the manifests that a process tends; the lock is held.
func (f *fleet) of(p *proc) (manifests map[string]uint64) {
	manifests = map[string]uint64{}
	for m, by := range f.tended {
		if by.by == p {
			manifests[m] = by.epoch
		}
	}
	return manifests
}

// shared waits until each process tends at least so many.
func (f *fleet) shared(least int, procs ...*proc) {
	f.t.Helper()
	f.await(fmt.Sprintf("each tends %d", least), patience, func() bool {
		for _, p := range procs {
			if len(f.of(p)) < least {
				return false
			}
		}
		return true
	})
}

// taken waits until others tend what a process tended, and returns when the last of it was.
func (f *fleet) taken(had map[string]uint64, within time.Duration) (last time.Time) {
	f.t.Helper()
	f.await("all was taken over", within, func() bool {
		last = time.Time{}
		for m, epoch := range had {
			now := f.tended[m]
			if now.epoch <= epoch {
				return false
			}
			if now.at.After(last) {
				last = now.at
			}
		}
		return true
	})
	return last
}

// had are the manifests of a process.
func (f *fleet) had(p *proc) map[string]uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of(p)
}

// refusals is how many effects the store refused for their fence.
func (f *fleet) refusals() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refused
}

func (p *proc) signal(s syscall.Signal) {
	p.of.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.of.t.Fatalf("cannot signal %s: %v", p.node, err)
	}
}

// kill ends a process and waits for that.
func (p *proc) kill() {
	_ = p.cmd.Process.Kill()
	<-p.over
}

func (f *fleet) killAll() {
	for _, p := range f.procs {
		_ = p.cmd.Process.Kill()
	}
	for _, p := range f.procs {
		<-p.over
		var exit *exec.ExitError
		if p.err != nil && errors.As(p.err, &exit) && exit.Exited() {
			f.t.Errorf("%s has ended by itself: %v", p.node, p.err)
		}
	}
}
