package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/store/internal/guard"
	"github.com/nodeactor/nodeactor/supervision"
)

const (
	// soloTickMs is the raft tick, in milliseconds, of a member that is alone: each wakes the processor of an idle node, and it has nobody to
	// hear from.
	soloTickMs = 200
	// soloElectionTicks is how many ticks such a member waits, at least, before it elects itself without being told to: the fewest that raft allows.
	soloElectionTicks = 2
	// commitEvery is how often the database is brought to disk behind the log; a crash replays as much.
	commitEvery = 500 * time.Millisecond
	// walSegmentBytes is preallocated for each log segment; the default of 64 MB is a long write on a small disk.
	walSegmentBytes = 8 << 20
	// maxValueBytes bounds one write, as the upstream store does.
	maxValueBytes = 1536 << 10
	// snapshotEvery is how many log entries lie between two raft snapshots.
	snapshotEvery = 10000
	// readyTimeout bounds the wait for the first leader.
	readyTimeout = 30 * time.Second
	// endTimeout bounds taking down a member that did not become ready.
	endTimeout = 5 * time.Second
	// lockFile is the name, in the directory, of the file that is locked while the engine is open.
	lockFile = "LOCK"
	// dirMode keeps the store, and every Secret in it, to its owner.
	dirMode = 0o700
	// peerURL is the address a member that is alone claims. Nothing listens on it.
	peerURL = "http://127.0.0.1:0"
)

func init() {
	// There is no per-server setting for it.
	wal.SegmentSizeBytes = walSegmentBytes
}

// Config says where and as whom to run the engine.
type Config struct {
	Dir      string // made if absent
	NodeName string // name of the member
	// QuotaBytes is what the database may hold before writes that need room are refused; 0 = DefaultQuota.
	QuotaBytes int64
	Clock      supervision.Clock
	Log        *slog.Logger
	// Peers is how the member meets others; nil = it is alone and has no listener.
	Peers *Peers
	// BeforeMembershipChange is called before the members are changed; its error prevents that. nil = nothing.
	BeforeMembershipChange func(ctx context.Context) error
}

// Member is an etcd member in this process.
type Member struct {
	server *etcdserver.EtcdServer
	lock   *os.File
	failed *failure
	group  *guard.Group
	clock  supervision.Clock
	solo   atomic.Bool
	// stop is done once; stopped is closed when nothing of the member runs any more, dead is set if it had failed before.
	stop    sync.Once
	stopped chan struct{}
	dead    atomic.Bool
	// compactedTo is the last revision this process compacted to.
	compactedTo atomic.Int64
	// seen records what has left the member.
	seen *seen
	// copies is how many copies of the database are being written.
	copies atomic.Int64

	// What a member with others has besides; peers is nil for one without.
	peers      *Peers
	dir        string
	log        *slog.Logger
	listener   net.Listener
	peerServer *http.Server
	peerClient *http.Client
	quorum     quorum
	settled    atomic.Bool // it has met the others
	before     func(ctx context.Context) error
	membersMu  sync.Mutex // one change of members at a time
	unsure     bool       // it is not known how a change of members ended
	comparing  atomic.Bool
	compared   int64 // revision at which all members were found to have the same; of who compares
	disagree   atomic.Pointer[[]string]
}

var _ Engine = (*Member)(nil)

// Open starts the engine of cfg.Dir and returns when it can read and write, or when ctx ends.
// The directory is left unlocked on failure. Errors name the directory.
func Open(ctx context.Context, cfg Config) (*Member, error) {
	m, err := open(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot open store %s: %w", cfg.Dir, err)
	}
	return m, nil
}

func open(ctx context.Context, cfg Config) (*Member, error) {
	lock, err := lockDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	m := &Member{lock: lock, clock: cfg.Clock, failed: newFailure(), stopped: make(chan struct{}), group: guard.New(context.WithoutCancel(ctx), "engine", cfg.Log),
		peers: cfg.Peers, dir: cfg.Dir, log: cfg.Log, before: cfg.BeforeMembershipChange}
	if err := tidy(cfg.Dir); err != nil {
		m.release()
		return nil, err
	}
	booted, err := m.start(ctx, cfg)
	if err == nil {
		return m, nil
	}
	if booted {
		m.endBooted(ctx)
	}
	m.release()
	return nil, err
}

// endBooted takes a member down that has booted and is of no use: the next one needs its files.
func (m *Member) endBooted(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	_ = m.Close(ctx)
}

// lockDir makes dir, proves it writable, and takes the lock that keeps a second process out.
func lockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, dirMode); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrLocked
		}
		return nil, err
	}
	return f, nil
}

func (m *Member) release() {
	m.group.Cancel()
	m.closePeers()
	_ = m.lock.Close()
}

// start boots the member in a goroutine of its own: the library ends the process or the goroutine when it dislikes what it finds
// on disk, and here it may only ever end the goroutine.
func (m *Member) start(ctx context.Context, cfg Config) (booted bool, err error) {
	var found survey
	done := make(chan error, 1)
	m.group.Go("engine boot", func(context.Context) error {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		var err error
		if found, err = mend(cfg); err != nil {
			return err
		}
		sc, err := serverConfig(cfg, newLogger(m.libraryLog(), m.failed))
		if err != nil {
			return err
		}
		if err := m.meetPeers(sc); err != nil {
			return err
		}
		server, err := etcdserver.NewServer(sc)
		if err != nil {
			return m.notJoined(sc, err)
		}
		m.server = server
		return m.begin(ctx, sc)
	}, func(err error) { done <- err })
	select {
	case err = <-done:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if fatal := m.failed.get(); fatal != nil {
		return err == nil, damaged(cfg.Dir, fatal)
	}
	if err != nil {
		return false, damaged(cfg.Dir, err)
	}
	return true, m.waitReady(ctx, cfg.Dir, found)
}

func (m *Member) waitReady(ctx context.Context, dir string, found survey) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	m.elect(ctx)
	if err := m.waitSettled(ctx); err != nil {
		return m.noLeader(ctx, err)
	}
	if _, err := m.Barrier(ctx); err != nil {
		return m.noLeader(ctx, err)
	}
	if have := m.Revision(); have < found.seen {
		return damage(newestLog(dir), fmt.Errorf("%w: the store has revision %d, and revision %d was acknowledged", errBehind, have, found.seen))
	}
	m.solo.Store(len(m.server.Cluster().Members()) <= 1)
	if err := m.join(ctx); err != nil {
		return err
	}
	return m.openSeen(dir)
}

// waitSettled returns once the member has applied everything it acknowledged before it was started.
//
// The barrier alone does not say so: alone, raft answers reads from what it remembers as committed, and the last entries before a crash
// are in the log without that remark. The member's own announcement, an entry of its own at each start, comes behind them all.
func (m *Member) waitSettled(ctx context.Context) error {
	select {
	case <-m.server.ReadyNotify():
		return nil
	case <-m.failed.ch:
		return m.failed.err
	case <-m.server.StopNotify():
		return m.whyStopped()
	case <-ctx.Done():
		return ctx.Err()
	}
}
