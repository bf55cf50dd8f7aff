package store

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nodeactor/nodeactor/store/engine"
)

// refillAgain is the wait between two tries to fill the index anew.
const refillAgain = time.Second

// External says where an etcd cluster is, and as whom to use it; see engine.ExternalConfig.
type External = engine.ExternalConfig

var (
	// ErrAway is returned when no endpoint of an external store answers.
	ErrAway = engine.ErrAway
	// ErrEndpoints is returned when endpoints or the files beside them cannot be used as they are.
	ErrEndpoints = engine.ErrEndpoints
)

// CheckEndpoints refuses what is not a list of https URLs of etcd members.
func CheckEndpoints(endpoints []string) error { return engine.CheckEndpoints(endpoints) }

// Reach returns once a member of the cluster that cfg names has answered as what is wanted. It waits as long as ctx.
func Reach(ctx context.Context, cfg Config) error {
	cfg = cfg.withDefaults()
	external := *cfg.External
	external.Clock, external.Log = cfg.Clock, cfg.Log
	host, err := engine.NewExternal(external)
	if err != nil {
		return err
	}
	_, err = host.Begin(ctx)
	return errors.Join(err, host.Close(context.WithoutCancel(ctx)))
}

// openExternal opens the store over an etcd cluster elsewhere. It waits as long as ctx for one of its members.
func openExternal(ctx context.Context, cfg Config) (*Store, error) {
	external := *cfg.External
	external.Clock, external.Log = cfg.Clock, cfg.Log
	host, err := engine.NewExternal(external)
	if err != nil {
		return nil, err
	}
	cfg.Dir = strings.Join(external.Endpoints, ",")
	s, err := openOn(ctx, cfg, host)
	if err != nil {
		_ = host.Close(ctx)
		return nil, err
	}
	return s, nil
}

// forgotten is the revision before which history is gone after a compaction to revision: where API servers take turns, another one may have
// forgotten less or more.
func (s *Store) forgotten(revision int64) int64 {
	if s.engine == nil {
		revision = max(s.compacted.Load(), s.host.Status().Compacted)
	}
	return revision
}

// refill puts the newest state into the index after a gap, however long the engine is away.
func (s *Store) refill(ctx context.Context, life engine.Life) error {
	for {
		rev, err := s.host.Barrier(ctx)
		if err == nil {
			kvs, at, stateErr := s.state(ctx, rev)
			if err = stateErr; err == nil {
				s.index.Reset(kvs, max(at, s.index.Revision()))
				return nil
			}
		}
		if err := errors.Join(ctx.Err(), life.Err()); err != nil {
			return err
		}
		s.cfg.Log.Debug("the store cannot be read again yet", "reason", err)
		if err := s.cfg.Clock.Sleep(ctx, refillAgain); err != nil {
			return err
		}
	}
}
