package operator

import (
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// Spec is the supervised subtree of a controller: its pool of manifests and the dispatcher that wakes them.
func Spec(c Controller, deps Deps) supervision.Spec {
	shared := newBoard()
	deps.Cache = c.declared(deps.Cache)
	reconciler := c.New(deps.Cache)
	template := catalog.Row("reconciler")
	pool := catalog.Row("manifests")
	pool.ID, pool.Template = poolID, &template
	dispatch := catalog.Row("dispatcher")
	dispatch.Start = func() supervision.Handler {
		return &dispatcher{controller: &c, reconciler: reconciler, deps: deps, board: shared}
	}
	group := catalog.Row("controller")
	group.ID = c.Name
	group.Children = []supervision.Spec{pool, dispatch}
	return group
}
