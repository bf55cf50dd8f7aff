package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/supervision"
)

// engineChild opens the store and keeps an engine in it. The store itself outlives this child: what reads from memory does not notice when
// the engine is lost, and writes are refused until the next generation has brought one.
func (p *parts) engineChild() supervision.Handler {
	return &keeper[*store.Store]{
		limit:   openTimeout,
		make:    p.openStore,
		publish: func(s *store.Store) func() { p.store.set(s); return func() {} },
		keep:    p.keepStore,
	}
}

// openStore opens the store once. A damaged one ends this start: no restart of the child would mend it.
func (p *parts) openStore(ctx context.Context) (*store.Store, error) {
	if s, _ := p.store.get(); s != nil {
		return s, nil
	}
	cfg, err := p.storeConfig()
	if err != nil {
		return nil, err
	}
	open := p.openOwn
	if p.cfg.external() {
		open = store.Open
	}
	s, err := open(ctx, cfg)
	if errors.Is(err, store.ErrDamaged) && !p.cfg.external() {
		p.refuse(damagedStore{err})
	}
	if errors.Is(err, store.ErrEndpoints) {
		p.refuse(err)
	}
	if err == nil {
		p.logClose("the copy that a read-only node left", os.RemoveAll(filepath.Join(p.cfg.DataDir, scratchDir)))
	}
	return s, err
}

// refuse ends a node that has not started yet, with the reason.
func (p *parts) refuse(err error) {
	select {
	case p.refused <- err:
	default:
	}
}

// keepStore returns with the reason when the engine is lost. One that was lost before is replaced first, however long the disk needs.
func (p *parts) keepStore(ctx context.Context, s *store.Store) error {
	defer p.restStore(ctx, s)
	select {
	case <-s.Failed():
		if err := s.Reopen(ctx); err != nil {
			return err
		}
		p.log.Info("the store takes writes again")
	default:
	}
	select {
	case <-ctx.Done():
		return nil
	case <-s.Failed():
		return s.Err()
	}
}

func (p *parts) restStore(ctx context.Context, s *store.Store) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	p.logClose("the store's engine", s.Rest(ctx))
}

// closeStore ends what outlives the engine.
func (p *parts) closeStore() {
	s, _ := p.store.get()
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	p.logClose("the store", s.Close(ctx))
}
