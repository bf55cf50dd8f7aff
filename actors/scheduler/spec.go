package scheduler

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// childKind is the scheduler's row in the catalog.
const childKind = "scheduler"

// Deps is what the scheduler needs of the node it runs on.
type Deps struct {
	// Source tells about nodes and pods. Required.
	Source Source
	// Client stores bindings, conditions and Events. It must not limit its own rate. Required.
	Client kubernetes.Interface
	// NodeClient keeps the nodes' taints true, which takes the right to patch nodes. Nil is Client.
	NodeClient kubernetes.Interface
	// NodeReady judges whether a node may get pods, from its object and whatever else is known, such as the age of its lease. It must
	// be quick. Nil believes the stored Ready condition.
	NodeReady func(node *v1.Node, now time.Time) bool
	// Name is the schedulerName this scheduler answers to; empty is default-scheduler.
	Name string
}

// Spec describes the scheduler as a child of the node. Each generation builds its ledger anew from the source.
func Spec(deps Deps) supervision.Spec {
	spec := catalog.Row(childKind)
	spec.Start = func() supervision.Handler { return newScheduler(deps) }
	return spec
}
