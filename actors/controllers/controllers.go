package controllers

import (
	"log/slog"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/controllers/deployment"
	"github.com/nodeactor/nodeactor/actors/controllers/endpoints"
	"github.com/nodeactor/nodeactor/actors/controllers/endpointslice"
	"github.com/nodeactor/nodeactor/actors/controllers/eventsttl"
	"github.com/nodeactor/nodeactor/actors/controllers/gc"
	"github.com/nodeactor/nodeactor/actors/controllers/namespace"
	"github.com/nodeactor/nodeactor/actors/controllers/nodelifecycle"
	"github.com/nodeactor/nodeactor/actors/controllers/replicagroup"
	"github.com/nodeactor/nodeactor/actors/controllers/replicaset"
	"github.com/nodeactor/nodeactor/actors/controllers/rootca"
	"github.com/nodeactor/nodeactor/actors/controllers/serviceaccount"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
	"github.com/nodeactor/nodeactor/supervision"
)

// Deps is what the controllers need. Events and Metrics may be nil: then nothing is recorded or counted.
type Deps struct {
	// Cache must be running, as an elder sibling of the controllers.
	Cache *cache.Cache
	// Client and Metadata talk to the API. Their rate limits should be off: flow control is the API's.
	Client   kubernetes.Interface
	Metadata metadata.Interface
	Clock    supervision.Clock
	Log      *slog.Logger
	Events   *kube.Recorder
	Metrics  *kube.Metrics
	// Breaker pauses controllers that write in circles; Client and Metadata must go through its Guard. Nil pauses none.
	Breaker *kube.Breaker
	// InjectFaults honours kube.InjectAnnotation.
	InjectFaults bool
	// RootCA gives the PEM bundle that pods verify the API with.
	RootCA func() []byte
	// Heartbeats tells of nodes this process hears itself, beside their stored leases; nil when silence is not to be judged.
	Heartbeats nodelifecycle.Heartbeats
	// ReplicaGroups is what can be switched about ReplicaGroups.
	ReplicaGroups replicagroup.Options
	// Further are controllers beside those that every node has.
	Further []kube.Controller
}

// All lists the controllers, in the order of the tree.
func All(d Deps) []kube.Controller {
	return []kube.Controller{
		deployment.New(d.Client, d.Clock, d.Events.For(deployment.Component)),
		replicaset.New(d.Client, d.Clock, d.Events.For(replicaset.Component)),
		namespace.New(d.Client, d.Metadata),
		serviceaccount.New(d.Client),
		rootca.New(d.Client, d.RootCA),
		gc.New(d.Metadata, d.Client.Discovery()),
		endpoints.New(d.Client, d.Events.For(endpoints.Component)),
		endpointslice.New(d.Client, d.Events.For(endpointslice.Component)),
		nodelifecycle.New(d.Client, d.Clock, d.Events.For(nodelifecycle.Component), d.Heartbeats),
		replicagroup.New(d.Client, d.Clock, d.Events.For(replicagroup.Component), d.Log, d.ReplicaGroups),
	}
}

// Specs lists the children of the `controllers` supervisor: who reports on them, a subtree for each controller, and the retention of Events.
func Specs(d Deps) []supervision.Spec {
	shared := kube.Deps{Cache: d.Cache, Clock: d.Clock, Log: d.Log, Metrics: d.Metrics, Breaker: d.Breaker, InjectFaults: d.InjectFaults}
	shared.Reporter = kube.NewReporter(shared, d.Metadata, d.Events)
	specs := []supervision.Spec{shared.Reporter.Spec()}
	for _, c := range append(All(d), d.Further...) {
		specs = append(specs, kube.Spec(c, shared))
	}
	return append(specs, eventsttl.Spec(d.Cache, d.Client))
}
