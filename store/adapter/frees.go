package adapter

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/nodeactor/nodeactor/store/engine"
)

// leaseResource keeps leaders and nodes alive.
var leaseResource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// frees tells whether a write is to be taken by a store that is full: what is on its way out must get there, whoever has a lease must be
// able to keep it, and what does not grow fills nothing once history is forgotten.
func (s *Store) frees(w engine.Write, obj runtime.Object) bool {
	if s.cfg.GroupResource == leaseResource {
		return true
	}
	if m, err := meta.Accessor(obj); err == nil && m.GetDeletionTimestamp() != nil {
		return true
	}
	item, _ := s.backend.Index.Get(w.Key)
	return item != nil && item.ModRevision == w.Expect && len(w.Value) <= len(item.Value)
}
