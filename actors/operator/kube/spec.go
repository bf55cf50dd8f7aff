package kube

import (
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// Spec is the supervised subtree of a controller: its pool of manifests, the watch for the kinds it reads, and the
// dispatcher that wakes the manifests.
func Spec(c Controller, deps Deps) supervision.Spec {
	shared := newBoard()
	served, away := newServed(), &outage{}
	deps.Reporter.serve(&c)
	deps.Cache = c.declared(deps.Cache)
	reconciler := c.New(deps.Cache)
	template := catalog.Row("reconciler")
	pool := catalog.Row("manifests")
	pool.ID, pool.Template = poolID, &template
	kinds := catalog.Row("kinds")
	kinds.Start = func() supervision.Handler { return &kindWatch{controller: &c, deps: deps, served: served} }
	dispatch := catalog.Row("dispatcher")
	dispatch.Start = func() supervision.Handler {
		return &dispatcher{controller: &c, reconciler: reconciler, deps: deps, board: shared, served: served, outage: away, mended: map[Key]mending{}}
	}
	group := catalog.Row("controller")
	group.ID = c.Name
	group.Children = []supervision.Spec{pool, kinds, dispatch}
	return group
}
