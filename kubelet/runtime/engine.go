package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/kubelet/runtime/cgroupfs"
	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
)

// Engine is the Runtime on this host. Its zero value is not usable; see [Open].
//
// mu guards pods and all they lead to, and is never held over a helper's work; gates serialise that by pod.
type Engine struct {
	cfg    Config
	layout wire.Layout
	cgroup *cgroupfs.Host
	lock   *os.File // of the run directory, for as long as the Engine is open
	alive  *os.File // handed to each helper, see wire.Layout.Helpers
	poll   *poller
	gates  gates
	slots  chan struct{} // one for each helper that makes or removes something, see heavyHelpers
	events chan Event

	mu         sync.Mutex
	pods       map[string]*pod
	containers map[string]*container

	seccompNotice sync.Once
}

var _ Runtime = (*Engine)(nil)

// Open takes the run directory. It changes nothing but what it needs itself; call Recover next. The error says what
// stands in the way: another Engine, a missing helper, a directory that cannot serve.
func Open(cfg Config) (*Engine, error) {
	if cfg.CgroupRoot == "" {
		cfg.CgroupRoot = defaultCgroupRoot
	}
	if cfg.StartDeadline == 0 {
		cfg.StartDeadline = startDeadline
	}
	if err := check(&cfg); err != nil {
		return nil, err
	}
	e := &Engine{
		cfg: cfg, layout: wire.Layout{Run: cfg.Dir}, events: make(chan Event, eventBacklog), slots: make(chan struct{}, heavyHelpers),
		pods: map[string]*pod{}, containers: map[string]*container{},
	}
	if err := e.open(); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *Engine) open() (err error) {
	if err = os.MkdirAll(e.cfg.Dir, 0o711); err != nil {
		return fmt.Errorf("cannot create the run directory: %w", err)
	}
	if e.cgroup, err = cgroupfs.Find(); err != nil {
		return err
	}
	if e.lock, err = lockOwn(e.layout.Engine()); err != nil {
		return fmt.Errorf("cannot use run directory %s, another process does: %w", e.cfg.Dir, err)
	}
	e.poll, err = newPoller()
	return err
}

// Close gives up the run directory. Containers keep running. No other call may be under way.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.containers {
		c.release(e.poll)
	}
	if e.poll != nil {
		e.poll.close()
	}
	for _, f := range []*os.File{e.alive, e.lock} {
		if f != nil {
			f.Close()
		}
	}
	return nil
}

// check refuses what would fail later in a less clear way.
func check(cfg *Config) error {
	if cfg.Ledger == nil || cfg.Clock == nil || cfg.Log == nil {
		return errors.New("cannot open the runtime: ledger, clock and log are needed")
	}
	for _, path := range []string{cfg.Dir, cfg.CgroupRoot} {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
			return fmt.Errorf("cannot open the runtime: %q is not a clean absolute path below /", path)
		}
	}
	st, err := os.Stat(cfg.HelperPath)
	if err != nil || st.Mode()&0o111 == 0 {
		return fmt.Errorf("cannot open the runtime: no helper program at %q", cfg.HelperPath)
	}
	bin := filepath.Dir(cfg.HelperPath) + "/"
	if strings.HasPrefix(cfg.Dir+"/", bin) || strings.HasPrefix(bin, cfg.Dir+"/") {
		return fmt.Errorf("cannot open the runtime: the folder of %s and the data directory with %s must lie apart, so that containers see neither; choose another data directory", cfg.HelperPath, cfg.Dir)
	}
	return nil
}

// lockOwn takes the run directory's lock. A process that was killed while it started a helper may hold it a moment longer,
// in the child that has not yet executed the helper.
func lockOwn(path string) (f *os.File, err error) {
	const look, enough = 20 * time.Millisecond, 2 * time.Second
	for waited := time.Duration(0); waited < enough; waited += look {
		if f, err = lockFile(path, unix.LOCK_EX); !errors.Is(err, unix.EWOULDBLOCK) {
			return f, err
		}
		_, _ = unix.Poll(nil, int(look/time.Millisecond))
	}
	return nil, err
}

// lockFile takes a lock that ends with the last process that has the returned file; it does not wait.
func lockFile(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Events implements Runtime.
func (e *Engine) Events() <-chan Event { return e.events }

// CgroupVersion implements Runtime.
func (e *Engine) CgroupVersion() int { return e.cgroup.Version() }

// removal context: what was half made is removed even when the caller has gone.
func cleanup(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), removeDeadline)
}
