package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nodeactor/nodeactor/store/encryption"
	"github.com/nodeactor/nodeactor/store/engine"
	"github.com/nodeactor/nodeactor/store/index"
	"github.com/nodeactor/nodeactor/store/internal/guard"
	"github.com/nodeactor/nodeactor/supervision"
)

const (
	// loadPage is how many keys are read at once while the index is filled.
	loadPage = 5000
	// healthTimeout bounds a health check whose caller set no deadline.
	healthTimeout = 5 * time.Second
)

// Names of the parts a caller of the store meets.
type (
	// Item is one stored version of one object; see index.Item.
	Item = index.Item
	// Event is one change of one key; see index.Event.
	Event = index.Event
	// EventType says what happened to a key.
	EventType = index.EventType
	// SubscribeOptions says which events are wanted.
	SubscribeOptions = index.SubscribeOptions
	// Subscription is one reader's place in the stream of events.
	Subscription = index.Subscription
	// Guard is a condition on another key for a write.
	Guard = engine.Guard
	// Status describes the engine.
	Status = engine.Status
)

// The event types.
const (
	Added    = index.Added
	Modified = index.Modified
	Deleted  = index.Deleted
)

var (
	// ErrCompacted is returned when the events or the revision asked for are no longer kept.
	ErrCompacted = index.ErrCompacted
	// ErrOverflow is returned when a subscriber fell behind further than events are kept.
	ErrOverflow = index.ErrOverflow
	// ErrClosed is returned when the store was closed or its engine failed.
	ErrClosed = index.ErrClosed
	// ErrDamaged is returned when a file of the store cannot be read as what it is; the error names it.
	ErrDamaged = engine.ErrDamaged
	// ErrStalled is returned when the disk does not take writes.
	ErrStalled = engine.ErrStalled
	// ErrNoSpace is returned when the disk, or the store's quota of it, is full.
	ErrNoSpace = engine.ErrNoSpace
	// ErrLocked is returned when another process uses the directory.
	ErrLocked = engine.ErrLocked
)

// Config says where and as whom to open a store.
type Config struct {
	Dir      string            // made if absent
	NodeName string            // name of this member
	Clock    supervision.Clock // nil = the machine's
	Log      *slog.Logger
	// External says where an etcd cluster is that is used instead of a directory; its clock and log are the store's.
	External *External
	// QuotaBytes is what the store's file may hold before writes that need room are refused; 0 = 8 GiB.
	QuotaBytes int64
	// Encryption is how values are stored; nil = as they are. It is closed by its owner, after the store.
	Encryption *encryption.Encryption
	// Peers is how the member meets others; nil = it is alone, without a listener.
	Peers *Peers
	// BeforeMembershipChange is called before the members are changed; its error prevents that. nil = nothing.
	BeforeMembershipChange func(ctx context.Context) error
}

// Store is an open store. All methods are safe for concurrent use.
type Store struct {
	cfg    Config
	host   engine.Host
	engine *engine.Seat // the host, when the log is in this process
	index  *index.Index
	group  *guard.Group
	leases leases
	// undecryptable are the objects that could not be decrypted; nil = all could.
	undecryptable atomic.Pointer[undecryptables]
	// sealers are the resources (schema.GroupResource) by their directories, as far as storages were asked for.
	sealers sync.Map

	compactMu sync.Mutex
	upkeep    upkeep
	compacted atomic.Int64
	// settled is the revision before which history is known to be gone from the disk, tended when it was last looked through.
	settled, tended atomic.Int64
}

// Open opens the store of cfg.Dir and returns when it can read and write and its index is filled.
// Errors name the directory; errors.Is ErrLocked when another process has it.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	if cfg.NodeName == "" {
		return nil, errors.New("cannot open store: no node name")
	}
	if cfg.External != nil {
		return openExternal(ctx, cfg)
	}
	seat := engine.NewSeat(engine.Config{Dir: cfg.Dir, NodeName: cfg.NodeName, QuotaBytes: cfg.QuotaBytes, Clock: cfg.Clock, Log: cfg.Log,
		Peers: cfg.Peers, BeforeMembershipChange: cfg.BeforeMembershipChange})
	s, err := openOn(ctx, cfg, seat)
	if err != nil {
		return nil, err
	}
	s.engine = seat
	return s, nil
}

func (c Config) withDefaults() Config {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Clock == nil {
		c.Clock = supervision.RealClock()
	}
	return c
}

// openOn makes the store over a host.
func openOn(ctx context.Context, cfg Config, host engine.Host) (*Store, error) {
	life, err := host.Begin(ctx)
	if err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, host: host, index: index.New(host), group: guard.New(context.WithoutCancel(ctx), "store", cfg.Log), leases: leases{turn: make(chan struct{}, 1)}, upkeep: upkeep{clock: cfg.Clock}}
	if err := s.load(ctx); err != nil {
		_ = host.Close(ctx)
		return nil, fmt.Errorf("cannot open store %s: %w", cfg.Dir, err)
	}
	s.follow(life)
	return s, nil
}

// Reopen gives the store a new engine after Failed was closed, waiting for as long as ctx for room on the disk. What is read from memory,
// and every subscription, goes on meanwhile and does not notice.
func (s *Store) Reopen(ctx context.Context) error {
	if err := s.index.Err(); err != nil {
		return fmt.Errorf("cannot reopen store %s: %w", s.cfg.Dir, err)
	}
	if err := s.Rest(ctx); err != nil {
		s.cfg.Log.Warn("the store's engine does not end in time", "dir", s.cfg.Dir, "reason", err)
	}
	life, err := s.host.Begin(ctx)
	if err != nil {
		return err
	}
	if have, want := life.Revision(), s.index.Revision(); have < want {
		err := fmt.Errorf("%w: it has come back with revision %d of %d", engine.ErrDamaged, have, want)
		s.index.Close(err)
		return fmt.Errorf("cannot reopen store %s: %w", s.cfg.Dir, err)
	}
	s.follow(life)
	return nil
}

// Rest closes the engine and keeps the rest: reads from memory go on, writes are refused until Reopen.
func (s *Store) Rest(ctx context.Context) error {
	s.leases.forget(ctx)
	return s.host.Empty(ctx)
}

// follow applies the one watch of the engine's life to the index until that ends.
func (s *Store) follow(life engine.Life) {
	s.group.Go("store watch", func(ctx context.Context) error { return s.pump(ctx, life) }, func(err error) { s.pumpEnded(life, err) })
}

// load fills the index with the state of one revision.
func (s *Store) load(ctx context.Context) error {
	kvs, rev, err := s.state(ctx, s.host.Revision())
	if err != nil {
		return err
	}
	s.index.Load(kvs, rev)
	s.upkeep.marked = rev
	s.tended.Store(s.upkeep.clock.Now().UnixNano())
	return nil
}

// state reads everything that is indexed, at a revision, or at a newer one when somebody else makes the engine forget that meanwhile.
func (s *Store) state(ctx context.Context, rev int64) ([]engine.KV, int64, error) {
	end := index.After(index.Root)
	var kvs []engine.KV
	for from := index.Root; ; {
		page, err := s.host.Range(ctx, from, end, rev, loadPage)
		if errors.Is(err, engine.ErrCompacted) && !s.host.Solo() {
			if rev, err = s.host.Barrier(ctx); err == nil {
				kvs, from = nil, index.Root
				continue
			}
		}
		if err != nil {
			return nil, 0, err
		}
		kvs = append(kvs, page.KVs...)
		if int64(len(page.KVs)) >= page.Count || len(page.KVs) == 0 {
			return kvs, rev, nil
		}
		from = page.KVs[len(page.KVs)-1].Key + "\x00"
	}
}

// pump applies every change to the index, from where it is. Where others may make the engine forget what was not followed yet, the index
// is filled anew after such a gap.
func (s *Store) pump(ctx context.Context, life engine.Life) error {
	for {
		err := life.Follow(ctx, index.Root, s.index.Revision(), func(b engine.Batch) error {
			s.index.Apply(b)
			return nil
		})
		if !errors.Is(err, engine.ErrCompacted) || s.host.Solo() {
			return err
		}
		s.cfg.Log.Warn("the store has forgotten what was not followed yet: everything is read again, and watches begin anew", "dir", s.cfg.Dir, "revision", s.index.Revision())
		if err := s.refill(ctx, life); err != nil {
			return err
		}
	}
}

// pumpEnded fails the life that can no longer be followed. An index that has missed a change, or panicked over one, is of no use any more.
func (s *Store) pumpEnded(life engine.Life, err error) {
	if errors.Is(err, guard.ErrPanicked) || errors.Is(err, guard.ErrExited) || errors.Is(err, engine.ErrCompacted) {
		s.index.Close(fmt.Errorf("%w: cannot follow the log: %w", ErrClosed, err))
	}
	if !errors.Is(err, context.Canceled) && !errors.Is(life.Err(), engine.ErrClosed) {
		s.cfg.Log.Error("store's engine stopped", "dir", s.cfg.Dir, "reason", err)
	}
	life.Fail(fmt.Errorf("cannot follow the log: %w", err))
}

// Close stops the store and releases its directory; it waits as long as ctx.
func (s *Store) Close(ctx context.Context) error {
	s.group.Cancel()
	s.group.Wait(ctx)
	s.index.Close(ErrClosed)
	return s.host.Close(ctx)
}

// Failed is closed when the engine can serve no more, or was closed: Reopen replaces it. Another channel belongs to the next.
func (s *Store) Failed() <-chan struct{} { return s.host.Failed() }

// Err says why the store serves no more; nil while it does.
func (s *Store) Err() error {
	if err := s.host.Err(); err != nil {
		return err
	}
	return s.index.Err()
}

// Revision is the newest revision the index has.
func (s *Store) Revision() int64 { return s.index.Revision() }

// Status describes the engine.
func (s *Store) Status() Status {
	st := s.host.Status()
	st.Revision = s.index.Revision()
	return st
}

// Healthy proves that the store answers with what was last acknowledged; nil says it does. Without a deadline in ctx it gives up
// after five seconds.
func (s *Store) Healthy(ctx context.Context) error {
	if s.engine != nil && s.engine.Held() {
		return s.Err() // writes wait for a work that ends by itself
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, healthTimeout)
		defer cancel()
	}
	rev, err := s.host.Barrier(ctx)
	if err == nil {
		err = s.index.Wait(ctx, rev)
	}
	if err != nil {
		return fmt.Errorf("cannot read store: %w", err)
	}
	return nil
}

// Counts returns the number of objects by resource, e.g. "pods" or "example.com/widgets".
func (s *Store) Counts() map[string]int {
	counts := map[string]int{}
	for dir, size := range s.index.Sizes() {
		counts[strings.TrimSuffix(strings.TrimPrefix(dir, index.Root), "/")] = int(size.Objects)
	}
	return counts
}

// Get returns the item stored under key, from memory.
func (s *Store) Get(key string) (*Item, bool) {
	item, _ := s.index.Get(key)
	return item, item != nil
}

// List returns the items whose keys have the prefix, in key order, and the revision at which they were that, from memory.
func (s *Store) List(prefix string) ([]*Item, int64) { return s.index.List(prefix) }

// Any reports whether an item of one resource has the prefix, which must reach beyond the resource's directory. It is cheaper than List.
func (s *Store) Any(prefix string) (found bool) {
	s.index.Snapshot(prefix).Ascend(prefix, "", func(*Item) bool { found = true; return false })
	return found
}

// Subscribe starts a gap-free stream of events. The caller closes it.
func (s *Store) Subscribe(o SubscribeOptions) *Subscription { return s.index.Subscribe(o) }

// WaitApplied returns when the index has revision.
func (s *Store) WaitApplied(ctx context.Context, revision int64) error {
	return s.index.Wait(ctx, revision)
}
