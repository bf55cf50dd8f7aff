package harness

import (
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// The strategies of groups, from the pure core.
const (
	OneForOne  = core.OneForOne
	OneForAll  = core.OneForAll
	RestForOne = core.RestForOne
)

// child is the declared part of every spec made here. Change what matters to a test.
func child(id string, kind core.Kind) core.ChildSpec {
	r := core.Reaction{Do: core.DoRestart, Backoff: core.Backoff{Initial: 100 * time.Millisecond, Factor: 2, Cap: 5 * time.Second, Reset: time.Minute}}
	return core.ChildSpec{
		ID: id, Row: id, Kind: kind, Restart: core.Permanent,
		StartTimeout: time.Minute, HangAfter: 10 * time.Second, StopTimeout: 5 * time.Second,
		Mailbox: core.Mailbox{Limit: 1000, Overflow: core.RejectNewest},
		Policy:  [core.NumFaultKinds]core.Reaction{r, r, r, r},
	}
}

// Worker is the spec of an actor that is restarted on every fault, with a back-off from 0.1 to
// 5 s; a hang is noticed after 10 s, and a stop may take 5 s.
func Worker(id string, start func() supervision.Handler) supervision.Spec {
	return supervision.Spec{ChildSpec: child(id, core.Worker), Start: start}
}

// Actor is Worker for code without state of its own.
func Actor(id string, f supervision.HandlerFunc) supervision.Spec {
	return Worker(id, func() supervision.Handler { return f })
}

// Group is the spec of a supervisor that bears 10 restarts in a minute and 100 in an hour.
func Group(id string, strategy core.Strategy, children ...supervision.Spec) supervision.Spec {
	s := supervision.Spec{ChildSpec: child(id, core.Supervisor), Children: children}
	s.ChildSpec.Group = groupSpec(strategy)
	s.StartTimeout, s.StopTimeout = 10*time.Minute, 10*time.Minute
	return s
}

// Pool is the spec of a supervisor of actors that come and go, each made from the template.
func Pool(id string, template supervision.Spec) supervision.Spec {
	s := Group(id, core.Pool)
	s.Template = &template
	return s
}

func groupSpec(strategy core.Strategy) core.GroupSpec {
	return core.GroupSpec{
		Strategy: strategy, MaxAbandoned: 5,
		Intensity: core.Intensity{Max: 10, Within: time.Minute}, Sustained: core.Intensity{Max: 100, Within: time.Hour},
	}
}
