package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/nodeactor/nodeactor/store/internal/guard"
	"github.com/nodeactor/nodeactor/supervision"
)

var (
	// ErrAway is returned when no endpoint of an external store answers; a write that was under way may have been done.
	ErrAway = errors.New("no endpoint of the store answers")
	// ErrEndpoints is returned when endpoints, or the files that prove who is who, cannot be used as they are: trying again is no use.
	ErrEndpoints = errors.New("the external store cannot be used")
)

const (
	// callFor bounds one try of a call.
	callFor = 5 * time.Second
	// graceFor is how long calls wait for a connection that was lost before they fail at once.
	graceFor = 2 * time.Second
	// outcomeFor is how long the outcome of a write is looked for after its try was cut off.
	outcomeFor = 15 * time.Second
	// connectFor is how long a first connection may take before it is looked into.
	connectFor = time.Second
	// againAfter is the wait between two tries of something that failed.
	againAfter = 200 * time.Millisecond
	// remindEvery is how often a store that waits for its endpoints says so.
	remindEvery = 30 * time.Second
)

// ExternalConfig says where an etcd cluster is, and as whom to use it.
type ExternalConfig struct {
	Endpoints []string // https URLs of its members
	CAFile    string   // who has signed the members' certificates; "" = those whom the host trusts
	CertFile  string   // this client's certificate and key, or neither; read again for each connection
	KeyFile   string
	Clock     supervision.Clock
	Log       *slog.Logger
	// Waiting is told why Begin still waits, and nil when it does no longer; nil = nobody.
	Waiting func(error)
}

// External is the Engine that is an etcd cluster elsewhere. Others may write to it, so what is applied here is never all there is.
type External struct {
	cfg    ExternalConfig
	client *clientv3.Client
	reach  *reach
	group  *guard.Group
	reads  sharedReads

	mu   sync.Mutex // one change of life at a time
	life atomic.Pointer[tie]
	// lost is closed when the life has failed; it is replaced with it.
	lost atomic.Pointer[failure]

	// cluster is the identity of what answered first.
	cluster atomic.Uint64
	// seen is the newest revision any answer has named, compactedTo what is known to be forgotten.
	seen, compactedTo atomic.Int64
	compactions       compactions
	status            cachedStatus
}

var _ Host = (*External)(nil)

// NewExternal returns an engine that has not begun. Errors wrap ErrEndpoints and name the setting; nothing is asked yet.
func NewExternal(cfg ExternalConfig) (*External, error) {
	client, err := newClient(cfg)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEndpoints, err)
	}
	e := &External{cfg: cfg, client: client, group: guard.New(context.Background(), "external engine", cfg.Log)}
	e.reads.read = e.linearizable
	e.reach = newReach(cfg, client, e.group)
	e.lost.Store(ended(ErrClosed))
	return e, nil
}

func ended(err error) *failure {
	f := newFailure()
	f.set(err)
	return f
}

// Begin implements Host. It waits as long as ctx for an endpoint that answers.
func (e *External) Begin(ctx context.Context) (Life, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.life.Load(); t != nil && t.Err() == nil {
		return t, nil
	}
	if err := e.await(ctx); err != nil {
		return nil, fmt.Errorf("cannot open store %s: %w", e.name(), err)
	}
	t := &tie{External: e, failed: newFailure(), ask: make(chan struct{}, 1)}
	e.lost.Store(t.failed)
	e.life.Store(t)
	return t, nil
}

// await returns once the cluster has answered as what is wanted.
func (e *External) await(ctx context.Context) error {
	for begin := (time.Time{}); ; {
		err := e.introduce(ctx)
		if err == nil || errors.Is(err, ErrEndpoints) {
			e.tell(nil)
			return err
		}
		if why := e.diagnose(ctx); errors.Is(why, ErrEndpoints) {
			e.tell(nil)
			return why
		} else if why != nil {
			err = why
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %w", ErrAway, err)
		}
		e.tell(fmt.Errorf("%w: %w", ErrAway, err))
		if now := e.cfg.Clock.Now(); now.Sub(begin) >= remindEvery {
			e.cfg.Log.Warn("waiting for the store: no endpoint answers", "endpoints", e.name(), "reason", err)
			begin = now
		}
		_ = e.cfg.Clock.Sleep(ctx, againAfter)
	}
}

func (e *External) tell(why error) {
	if e.cfg.Waiting != nil {
		e.cfg.Waiting(why)
	}
}

// Refusal is why a write would be refused now, or nil.
func (e *External) Refusal() error {
	if _, err := e.current(); err != nil {
		return err
	}
	if _, ready, since := e.reach.look(); !ready && e.cfg.Clock.Now().Sub(since) >= graceFor {
		return ErrAway
	}
	return nil
}

// introduce asks the cluster for the first time, once there is a connection.
func (e *External) introduce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	if err := e.reach.connected(ctx); err != nil {
		return err
	}
	if _, err := e.linearizable(ctx); err != nil {
		return err
	}
	return e.askStatus(ctx)
}

// name is how the store is called in messages.
func (e *External) name() string { return strings.Join(e.cfg.Endpoints, ",") }

// Empty implements Host.
func (e *External) Empty(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.life.Swap(nil); t != nil {
		t.failed.set(ErrClosed)
	}
	return nil
}

// current returns the life in which a call is made.
func (e *External) current() (*tie, error) {
	t := e.life.Load()
	if t == nil {
		return nil, ErrClosed
	}
	if err := t.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return t, nil
}

// observe notes what an answer says of the cluster as a whole.
func (e *External) observe(h *etcdserverpb.ResponseHeader) error {
	if id := h.GetClusterId(); id != 0 && !e.cluster.CompareAndSwap(0, id) && e.cluster.Load() != id {
		err := fmt.Errorf("%w: an endpoint of %s belongs to another cluster (%x) than the others (%x)", ErrEndpoints, e.name(), id, e.cluster.Load())
		if t := e.life.Load(); t != nil {
			t.Fail(err)
		}
		return err
	}
	raise(&e.seen, h.GetRevision())
	return nil
}

// raise makes v at least to.
func raise(v *atomic.Int64, to int64) {
	for {
		have := v.Load()
		if have >= to || v.CompareAndSwap(have, to) {
			return
		}
	}
}

// Revision implements Engine.
func (e *External) Revision() int64 { return e.seen.Load() }

// Solo implements Engine.
func (e *External) Solo() bool { return false }

// Failed implements Engine.
func (e *External) Failed() <-chan struct{} { return e.lost.Load().ch }

// Err implements Engine.
func (e *External) Err() error { return e.lost.Load().get() }

// Close implements Engine.
func (e *External) Close(ctx context.Context) error {
	_ = e.Empty(ctx)
	e.group.Cancel()
	err := e.client.Close()
	if !e.group.Wait(ctx) {
		return fmt.Errorf("cannot close engine: %w", ctx.Err())
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("cannot close engine: %w", err)
	}
	return nil
}

// tie is one life of an External: it lasts until what was followed can no longer be.
type tie struct {
	*External
	failed *failure
	// followed is the revision up to which everything was handed out, wanted what a reader waits for.
	followed, wanted atomic.Int64
	// ask has a token when the watch is to be asked how far it is; armed tells that there will be one.
	ask   chan struct{}
	armed atomic.Bool
}

var _ Life = (*tie)(nil)

// Err implements Life.
func (t *tie) Err() error { return t.failed.get() }

// Fail implements Life.
func (t *tie) Fail(err error) { t.failed.set(err) }
