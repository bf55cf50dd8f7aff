package node

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/nodeactor/nodeactor/actors/health"
	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/store/snapshot"
	"github.com/nodeactor/nodeactor/supervision"
)

const (
	// scratchDir, in the data directory, holds the copy of a snapshot that a read-only node reads from.
	scratchDir = "readonly"
	// assessLimit bounds looking for a good snapshot, restoreLimit making the store anew from it: both read and write gigabytes at most.
	assessLimit, restoreLimit = 10 * time.Minute, 30 * time.Minute
)

// damagedStore ends a start: the store cannot be opened without loss.
type damagedStore struct{ error }

func (d damagedStore) Unwrap() error { return d.error }

// damage is why a node does not use its store, and what it does instead.
type damage struct {
	store.Damage
	verdict store.Verdict
}

// storeConfig is how the store of this node is opened.
func (p *parts) storeConfig() (store.Config, error) {
	quota, err := p.cfg.quotaBytes()
	return store.Config{
		QuotaBytes: quota, Dir: filepath.Join(p.cfg.DataDir, StoreDir), NodeName: p.cfg.NodeName, Log: p.log, Clock: p.clock, Encryption: p.encryption,
		External:               p.externalStore(),
		BeforeMembershipChange: p.saver.before,
	}, err
}

// afterDamage goes on after a start that ended with a damaged store, when nothing else of the node had been started yet: with a store from the
// newest good snapshot if that was asked for, otherwise with reads only.
func (p *parts) afterDamage(ctx context.Context, begin time.Time, err error) (Report, error) {
	cfg, cfgErr := p.storeConfig()
	if cfgErr != nil {
		return Report{Containers: -1}, cfgErr
	}
	limited, cancel := context.WithTimeout(ctx, assessLimit)
	d := &damage{Damage: store.Assess(limited, cfg, filepath.Join(p.cfg.DataDir, snapshot.Dir), err)}
	cancel()
	d.verdict = store.Choose(d.Good != nil, p.cfg.AcceptDataLoss)
	switch d.verdict {
	case store.Refuse:
		return Report{Containers: -1}, fmt.Errorf("%w; the loss is accepted, but %s; %s", d.Err, oneLine(d.None.Error()), d.waysOut())
	case store.FallBack:
		if err := p.fallBack(ctx, cfg, d); err != nil {
			return Report{Containers: -1}, fmt.Errorf("%w; and no store could be made from %s: %w", d.Err, d.Good.Path, err)
		}
		return p.live(ctx, begin, p.tree)
	}
	p.damage = d
	p.log.Error(d.reason())
	return p.live(ctx, begin, p.readOnlyTree)
}

// fallBack makes the store anew from the newest good snapshot.
func (p *parts) fallBack(ctx context.Context, cfg store.Config, d *damage) error {
	p.log.Warn("the store is made anew from a snapshot, as --accept-data-loss says", "damage", d.Err, "snapshot", d.Good.Path, "lost", d.Lost())
	ctx, cancel := context.WithTimeout(ctx, restoreLimit)
	defer cancel()
	restored, err := d.Restore(ctx, cfg)
	if err != nil {
		return err
	}
	p.log.Warn("the store was made anew", "revision", restored.Revision, "lost", d.Lost(), "damaged files", restored.Aside)
	return nil
}

// reason says in one line what is wrong with the node, and the ways out.
func (d *damage) reason() string {
	if d.verdict == store.Unreadable {
		return oneLine(fmt.Sprintf("the store cannot be read: %v; %v; %s", d.Err, d.None, d.waysOut()))
	}
	return store.ErrReadOnly.Error() + ": " + d.cause()
}

// cause is reason without what is known where it is said that nothing is written.
func (d *damage) cause() string {
	return oneLine(fmt.Sprintf("%v; reads are answered as of %s (revision %d, %s); %s", d.Err, d.AsOf().Format(time.RFC3339), d.Good.Revision, d.Good.Name(), d.waysOut()))
}

// fault is what the smaller tree is told of the fault that ended the whole one.
func (d *damage) fault() supervision.Fault {
	return supervision.Fault{Kind: supervision.ErrorReturn, Path: rootPath + "/store/engine", Generation: 1, Message: "job make", Err: d.Err}
}

// waysOut says what a person can do.
func (d *damage) waysOut() string {
	const whole = "to lose nothing, stop the node, put the file back from a copy and start it again"
	if d.Good == nil {
		return whole + "; or bring a snapshot with `nodeactor snapshot restore FILE`; or give up the cluster's objects and its containers with `nodeactor reset`"
	}
	return fmt.Sprintf("%s; to go on from the snapshot, start it once with --accept-data-loss: lost is %s", whole, d.Lost())
}

// short is what those are told who only use the API.
func (d *damage) short() string {
	return fmt.Sprintf("the store is damaged: this is the state of %s, and nothing is written or done; kubectl get --raw /readyz says more", d.AsOf().Format(time.RFC3339))
}

// ailing is why the node is not ready, nil when its store is whole.
func (p *parts) ailing() error {
	if why := p.absent.reason(); why != nil {
		return health.Told{Reason: why}
	}
	if p.damage == nil {
		return nil
	}
	return health.Told{Reason: errors.New(p.damage.reason())}
}

// frozenChild serves the store from a copy of the newest good snapshot.
func (p *parts) frozenChild() supervision.Handler {
	return &keeper[*store.Store]{
		limit: openTimeout,
		make: func(ctx context.Context) (*store.Store, error) {
			cfg, err := p.storeConfig()
			if err != nil {
				return nil, err
			}
			return store.OpenReadOnly(ctx, cfg, *p.damage.Good, filepath.Join(p.cfg.DataDir, scratchDir), errors.New(p.damage.cause()))
		},
		publish: p.store.set,
		keep: func(ctx context.Context, s *store.Store) error {
			select {
			case <-ctx.Done():
			case <-s.Failed():
			}
			err := s.Err()
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
			defer cancel()
			p.logClose("the copy of the snapshot", s.Close(closing))
			return err
		},
	}
}
