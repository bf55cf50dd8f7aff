package adapter

import (
	"context"

	"k8s.io/apiserver/pkg/warning"

	"github.com/nodeactor/nodeactor/store/engine"
)

// markStale tells the client of a read that may be of any age that this one may be old: the members of the store have no quorum.
func (s *Store) markStale(ctx context.Context) {
	e, ok := s.backend.Engine.(interface{ Outage() *engine.Outage })
	if !ok {
		return
	}
	if o := e.Outage(); o != nil {
		warning.AddWarning(ctx, "", "this answer may be stale: "+o.Error())
	}
}
