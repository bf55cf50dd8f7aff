// Package catalog is the closed list of the product's children: for each kind its
// windows, restart type, strategy, budget and one policy cell for each kind of fault.
//
// It is data only; Apply changes single children of a tree as a configuration says. The tree is put together in actors/node; a row without constructor
// there, or a constructor without row, fails a test.
package catalog

import (
	"fmt"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// Class says what a child loses with its generation.
type Class string

// The state classes.
const (
	// Stateless children find everything again in the store.
	Stateless Class = "stateless"
	// Stateful children rebuild an image of something outside them when they start.
	Stateful Class = "stateful"
	// Listener children own a network port.
	Listener Class = "listener"
	// Structure is a supervisor.
	Structure Class = "supervisor"
)

// Entry is one row.
type Entry struct {
	Class Class
	// Does says in a few words what the child is for.
	Does string
	Spec core.ChildSpec
}

const (
	second = time.Second
	minute = time.Minute
	hour   = time.Hour
	// untilChildren is the start and stop window of a supervisor. Each child is given up after
	// its own window, so a supervisor always ends before this one: it only catches a defect of
	// the supervisor itself, and must be longer than all children one after the other.
	untilChildren = 30 * minute
)

// Back-off curves. Their product up the tree stays below one restart a second.
var (
	// quick is for children that are cheap to rebuild and needed at once.
	quick = core.Backoff{Initial: 50 * time.Millisecond, Factor: 2, Cap: 10 * second, Jitter: 0.2, Reset: minute}
	// slow is for reconcilers: an object that cannot be reconciled is retried up to a minute apart.
	slow = core.Backoff{Initial: second / 2, Factor: 2, Cap: minute, Jitter: 0.2, Reset: 2 * minute}
	// rebind serves a freed port within a second of its release.
	rebind = core.Backoff{Initial: 250 * time.Millisecond, Factor: 2, Cap: 900 * time.Millisecond, Jitter: 0.1, Reset: minute}
)

// restartWith fills the policy of a child that is always restarted.
func restartWith(b core.Backoff) [core.NumFaultKinds]core.Reaction {
	r := core.Reaction{Do: core.DoRestart, Backoff: b}
	return [core.NumFaultKinds]core.Reaction{
		core.Panic: r, core.Hang: r, core.ErrorReturn: r, core.BindFailure: {Do: core.DoRestart, Backoff: rebind},
	}
}

// escalate fills the policy of a group whose failure is its supervisor's.
func escalate() [core.NumFaultKinds]core.Reaction {
	e := core.Reaction{Do: core.DoEscalate}
	return [core.NumFaultKinds]core.Reaction{core.Panic: e, core.Hang: e, core.ErrorReturn: e, core.BindFailure: e}
}

// worker is a child with code; windows in the order start, hang, stop.
func worker(row string, class Class, does string, start, hang, stop time.Duration, b core.Backoff) Entry {
	return Entry{class, does, core.ChildSpec{
		ID: row, Row: row, Kind: core.Worker, Restart: core.Permanent,
		StartTimeout: start, HangAfter: hang, StopTimeout: stop,
		Mailbox: core.Mailbox{Limit: 4096, Overflow: core.RejectNewest}, Policy: restartWith(b),
	}}
}

// expendable marks a child of which any number may hang, because somebody else bounds it.
func expendable(e Entry) Entry {
	e.Spec.Expendable = true
	return e
}

// group is a supervisor. It is restarted as a whole when its own budget is spent.
func group(row, does string, s core.Strategy, in budget, policy [core.NumFaultKinds]core.Reaction) Entry {
	return Entry{Structure, does, core.ChildSpec{
		ID: row, Row: row, Kind: core.Supervisor, Restart: core.Permanent,
		StartTimeout: untilChildren, HangAfter: minute, StopTimeout: untilChildren,
		Mailbox: core.Mailbox{Limit: 1 << 20, Overflow: core.RejectNewest}, Policy: policy,
		Group: core.GroupSpec{Strategy: s, Intensity: in.burst, Sustained: in.sustained, MaxAbandoned: 16},
	}}
}

// budget is how many restarts a group bears in a burst, and how many for longer.
type budget struct{ burst, sustained core.Intensity }

// Budgets. Levels multiply, so the higher the slower: a fault that never ends makes a child
// start less than once a second on average before the node gives up. Both budgets of leaf
// bear one child that fails for ever at the pace of its back-off: that is shown, and is no
// reason to take its siblings down.
var (
	leaf = budget{core.Intensity{Max: 30, Within: minute}, core.Intensity{Max: 500, Within: hour}}
	many = budget{core.Intensity{Max: 15, Within: minute}, core.Intensity{Max: 20, Within: 6 * hour}}
	mid  = budget{core.Intensity{Max: 10, Within: 5 * minute}, core.Intensity{Max: 20, Within: 6 * hour}}
	top  = budget{core.Intensity{Max: 5, Within: 10 * minute}, core.Intensity{Max: 6, Within: 24 * hour}}
	own  = budget{core.Intensity{Max: 5, Within: minute}, core.Intensity{Max: 30, Within: hour}}
)

// Rows is the whole catalog, in the order of the tree.
var Rows = []Entry{
	group("node", "one host", core.RestForOne, top, escalate()),
	group("store", "the durable state", core.RestForOne, mid, restartWith(slow)),
	worker("engine", Stateful, "the etcd member, the index and its watch", 2*minute, 30*second, 20*second, slow),
	worker("maintenance", Stateless, "compaction, room under the quota, a file without holes", 10*second, 30*second, 10*second, slow),
	group("cluster", "who this host is", core.OneForOne, mid, restartWith(slow)),
	worker("identity", Stateful, "certificates and their renewal", 30*second, 30*second, 5*second, slow),
	group("api", "the Kubernetes API", core.RestForOne, mid, restartWith(slow)),
	worker("server", Stateful, "the API server's handlers", minute, 30*second, 20*second, quick),
	worker("bootstrap", Stateless, "namespaces, default policy, the kubernetes Service", 30*second, 30*second, 10*second, slow),
	group("listeners", "the ports of the API", core.OneForOne, leaf, restartWith(slow)),
	worker("listener", Listener, "HTTPS for the API", 10*second, 30*second, 5*second, quick),
	worker("etcd-listener", Listener, "the etcd API", 10*second, 30*second, 5*second, quick),
	worker("socket", Listener, "the local socket for images", 10*second, 30*second, 5*second, quick),
	group("core", "what there is one of, each on its own", core.OneForOne, leaf, restartWith(slow)),
	worker("cache", Stateful, "typed objects for everything in this process", 30*second, 30*second, 10*second, quick),
	worker("scheduler", Stateful, "pending Pod to node", 30*second, 30*second, 10*second, quick),
	worker("health", Stateless, "metrics of the tree", 10*second, 30*second, 5*second, quick),
	worker("snapshots", Stateless, "copies of the store, when it is time", 10*second, 30*second, 10*second, slow),
	group("controllers", "one group for each controller", core.OneForOne, many, restartWith(slow)),
	worker("reporter", Stateless, "tells on objects how their reconcilers do", 30*second, 30*second, 10*second, quick),
	// A dispatcher that starts anew wakes every manifest, so a new pool fills again.
	group("controller", "reconcilers and their dispatcher", core.RestForOne, leaf, restartWith(slow)),
	worker("kinds", Stateless, "waits until the kinds a controller reads are served", 30*second, 30*second, 10*second, quick),
	worker("dispatcher", Stateless, "turns events into wake-ups of manifests", 30*second, 30*second, 10*second, quick),
	group("manifests", "one actor for each manifest", core.Pool, own, restartWith(slow)),
	expendable(worker("reconciler", Stateless, "one manifest; its engine bounds how many of its passes hang", 30*second, 30*second, 10*second, slow)),
	worker("events-ttl", Stateless, "retention of Events", 30*second, 30*second, 10*second, slow),
	group("kubelet", "this host's pods", core.OneForOne, leaf, restartWith(slow)),
	worker("network", Stateful, "bridge, addresses, masquerading", 30*second, 30*second, 10*second, quick),
	worker("images", Stateful, "image store and its clean-up", 30*second, minute, 10*second, quick),
	worker("relist", Stateless, "what the runtime really runs", 30*second, 180*second, 10*second, quick),
	group("pods", "one actor for each pod", core.Pool, own, restartWith(quick)),
	worker("pod", Stateful, "one pod", 30*second, 30*second, 10*second, quick),
	worker("sync", Stateful, "which pods belong here", 30*second, 30*second, 10*second, quick),
	worker("node-status", Stateless, "the Node object", 30*second, 30*second, 10*second, quick),
	worker("node-lease", Stateless, "this node's heartbeat", 30*second, 30*second, 10*second, quick),
	worker("kubelet-listener", Listener, "logs, exec, port-forward", 10*second, 30*second, 5*second, quick),
}

// Row returns a row's spec for a child to fill in; the ID is the row's name. An unknown
// name is a mistake in the program and panics: a test calls every constructor.
func Row(name string) supervision.Spec {
	e, ok := find(name)
	if !ok {
		panic(fmt.Sprintf("the catalog has no row %q", name))
	}
	return supervision.Spec{ChildSpec: e.Spec}
}

func find(name string) (e Entry, ok bool) {
	for _, e := range everyRow() {
		if e.Spec.Row == name {
			return e, true
		}
	}
	return Entry{}, false
}
