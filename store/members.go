package store

import (
	"context"
	"errors"

	"github.com/nodeactor/nodeactor/store/engine"
)

type (
	// Peers says how a member of a store meets the others; see engine.Peers.
	Peers = engine.Peers
	// PeerTLS names the files of a member's certificate; see engine.PeerTLS.
	PeerTLS = engine.PeerTLS
	// MemberInfo is one member of a store; see engine.MemberInfo.
	MemberInfo = engine.MemberInfo
	// Outage is a time without a quorum; see engine.Outage.
	Outage = engine.Outage
)

var (
	// ErrNoQuorum is returned when too few members answer; the error names the missing ones.
	ErrNoQuorum = engine.ErrNoQuorum
	// ErrMembership is returned when a change of the members is refused, and nothing was changed.
	ErrMembership = engine.ErrMembership
	// ErrRemoved is returned when the cluster has removed this member.
	ErrRemoved = engine.ErrRemoved
	// ErrUnknown is returned when a write was begun and nobody knows whether it was done, or will be.
	ErrUnknown = engine.ErrUnknown
)

// errExternal is returned when the members are somebody else's.
var errExternal = errors.New("the store is external: its members are changed with its own tools")

// Members are the members as this one knows them; none for an external store.
func (s *Store) Members() []MemberInfo {
	if s.engine == nil {
		return nil
	}
	return s.engine.Members()
}

// AddLearner tells the members of another one, reached at url. What it returns is that one's Peers.Cluster, to be opened with Peers.Join.
func (s *Store) AddLearner(ctx context.Context, name, url string) (map[string]string, error) {
	if s.engine == nil {
		return nil, errExternal
	}
	return s.engine.AddLearner(ctx, name, url)
}

// Promote gives a learner its vote, once it has caught up; ErrMembership until then.
func (s *Store) Promote(ctx context.Context, id uint64) error {
	if s.engine == nil {
		return errExternal
	}
	return s.engine.Promote(ctx, id)
}

// Remove takes a member out, unless the others could not go on without it.
func (s *Store) Remove(ctx context.Context, id uint64) error {
	if s.engine == nil {
		return errExternal
	}
	return s.engine.Remove(ctx, id)
}

// Outage is the time without a quorum that lasts, nil while there is none.
func (s *Store) Outage() *Outage {
	if s.engine == nil {
		return nil
	}
	return s.engine.Outage()
}
