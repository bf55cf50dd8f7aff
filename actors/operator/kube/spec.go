package kube

import (
	"slices"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator/engine"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// Timings are those of the engine, but that a pass costs little where everything is in the cache: it runs every half a minute, and the
// actors stay to be seen.
func Timings() engine.Timings {
	t := engine.DefaultTimings
	t.Resync, t.Linger = 30*time.Second, 0
	return t
}

// Spec is the supervised subtree of a controller: its pool of manifests, the watch for the kinds it reads, and the
// dispatcher that wakes the manifests.
func Spec(c Controller, deps Deps) supervision.Spec {
	deps.Reporter.serve(&c)
	deps.Cache = c.declared(deps.Cache)
	all := newServed()
	s := &source{controller: &c, deps: deps, served: all}
	r := &runner{controller: &c, reconciler: c.New(deps.Cache), deps: deps}
	kinds := catalog.Row("kinds")
	kinds.Start = func() supervision.Handler { return &kindWatch{controller: &c, deps: deps, served: all} }
	timings := Timings()
	if c.Timings != nil {
		timings = *c.Timings
	}
	group := engine.Spec(c.Name, s, r.hooks(), timings, c.Limits)
	group.Children = slices.Insert(group.Children, 1, kinds)
	return group
}
