package operatortest

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/actors/operator/storage"
)

// member is one node of a Kit.
type member[S operator.Specification] struct {
	name string
	link *link
	// execution is nil while there is no process.
	execution *operator.Execution
}

// newPlane makes a control plane on a way to the store.
func (k *Kit[S]) newPlane(node string, op operator.Operator[S], way storage.Store) *operator.ControlPlane[S] {
	k.boots++
	p, err := operator.NewControlPlane(op, k.options.config, way, operator.WithNodeName(node), operator.WithBoot(fmt.Sprint(k.boots)),
		operator.WithLogger(slog.New(slog.DiscardHandler)), operator.WithSystem(k.Config(), k.Adopt))
	if err != nil {
		k.Fatalf("%v", err)
	}
	return p
}

// start boots a process.
func (k *Kit[S]) start(m *member[S]) {
	m.link = newLink(k.store, &k.effects)
	link := m.link
	op := wrap(k.make(k), func(ctx context.Context, state *operator.ManifestState[S], do func() error) error {
		return k.passes.around(ctx, link, state.Manifest.Key().String(), do)
	})
	plane := k.newPlane(m.name, op, m.link)
	execution, err := operator.NewExecution(plane)
	if err == nil {
		err = execution.Start()
	}
	if err != nil {
		k.Fatalf("cannot start %s: %v", m.name, err)
	}
	m.execution = execution
}

// member finds a node.
func (k *Kit[S]) member(name string) *member[S] {
	for _, m := range k.members {
		if m.name == name {
			return m
		}
	}
	k.Fatalf("there is no %s", name)
	return nil
}

// Start starts a node that was killed or stopped, or another one. It has another boot.
func (k *Kit[S]) Start(name string) {
	for _, m := range k.members {
		if m.name == name && m.execution == nil {
			k.start(m)
			return
		} else if m.name == name {
			k.Fatalf("%s runs already", name)
		}
	}
	m := &member[S]{name: name}
	k.members = append(k.members, m)
	k.start(m)
}

// Kill ends the process of a node as a crash would: what it was about to write is not written, and it gives nothing back. As on a store that
// several processes share, its end is noticed at once.
func (k *Kit[S]) Kill(name string) {
	link := k.member(name).link
	k.Vanish(name)
	k.store.Announce(true, link.sessions...)
}

// Vanish is Kill of the whole host: nobody is told, and its session has to run out.
func (k *Kit[S]) Vanish(name string) {
	m := k.member(name)
	if m.execution == nil {
		k.Fatalf("%s does not run", name)
	}
	k.Note("%s is killed", name)
	m.link.die()
	execution := m.execution
	m.execution = nil
	execution.System().Stop(background())
}

// Stop stops a node in order: it gives its leases back, and others take them over at once.
func (k *Kit[S]) Stop(name string) {
	m := k.member(name)
	if m.execution == nil {
		k.Fatalf("%s does not run", name)
	}
	k.leave(m)
}

// leave stops a node in order, if it runs.
func (k *Kit[S]) leave(m *member[S]) {
	execution := m.execution
	if execution == nil {
		return
	}
	m.execution = nil
	execution.Leave()
	k.Await(leaveWithin, execution.Left)
	execution.System().Stop(background())
}

// Partition cuts nodes off from the store, until Heal: they neither ask nor hear anything, and do not know why.
func (k *Kit[S]) Partition(names ...string) {
	for _, name := range names {
		k.Note("%s is cut off", name)
		k.member(name).link.sever()
	}
}

// Heal ends all partitions.
func (k *Kit[S]) Heal() {
	for _, m := range k.members {
		if m.link != nil {
			m.link.heal()
		}
	}
}

// Holder is the node that holds the lease of a manifest, "" for none.
func (k *Kit[S]) Holder(name string) string {
	v, _ := k.Get(name)
	stored, err := k.store.Lease(k.Context(), storage.ID{Kind: k.plane.Kind(), Namespace: v.Namespace, Name: v.Name}.Key())
	if err != nil {
		k.Fatalf("%v", err)
	}
	// A process has a session for each kind, by the name of its node and of the kind.
	node, _, _ := strings.Cut(stored.Holder.Node, "@")
	return node
}
