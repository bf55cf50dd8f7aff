package operatortest

import (
	"container/heap"
	"context"
	"fmt"
	"time"
)

// script writes the story. A part of the nodes crashes, half of them announced; others are cut off or stand still beyond the life of their
// sessions; new ones join, and those that crashed come back. Meanwhile specifications change and manifests are deleted.
func (f *fleet[S]) script() {
	part := max(1, f.size.Nodes/20)
	for i := range f.size.Nodes {
		f.nodes = append(f.nodes, newNode(i))
	}
	f.at(0, func() { f.each(f.nodes, f.start) })
	f.at(time.Second, func() { f.add() })
	f.at(8*time.Second, func() {
		dead := f.pick(part)
		f.each(dead, f.crash)
		for _, n := range dead[:len(dead)/2] {
			id := n.id
			f.at(f.clock.now+time.Second+f.jitter(0), func() { f.declare(id, true) })
		}
		f.at(30*time.Second, func() { f.each(dead, f.start) })
	})
	f.at(10*time.Second, func() {
		cut := f.pick(part)
		f.each(cut, func(n *node) { n.cut = true })
		f.report.CutOff += len(cut)
		f.at(36*time.Second, func() { f.each(cut, f.heal) })
	})
	f.at(12*time.Second, func() {
		frozen := f.pick(part)
		f.each(frozen, func(n *node) { n.frozen = true })
		f.report.Frozen += len(frozen)
		f.at(33*time.Second, func() { f.each(frozen, f.thaw) })
	})
	f.at(11500*time.Millisecond, func() { f.change(f.size.Manifests / 2) })
	f.at(18*time.Second, func() { f.remove(f.size.Manifests / 50) })
	f.at(20*time.Second, func() { f.join(part) })
	f.at(32500*time.Millisecond, func() { f.change(f.size.Manifests / 10) })
}

// at does something later.
func (f *fleet[S]) at(when time.Duration, do func()) {
	heap.Push(&f.chores, chore{when, len(f.chores), do})
}

// jitter is up to a second, and never less than the least.
func (f *fleet[S]) jitter(least time.Duration) time.Duration {
	return least + time.Duration(f.rng.IntN(1000))*time.Millisecond
}

func (f *fleet[S]) each(nodes []*node, do func(*node)) {
	for _, n := range nodes {
		do(n)
	}
}

// pick chooses nodes that nothing hinders.
func (f *fleet[S]) pick(n int) (some []*node) {
	for _, i := range f.rng.Perm(len(f.nodes)) {
		if one := f.nodes[i]; one.up && !one.cut && !one.frozen && len(some) < n {
			some = append(some, one)
		}
	}
	return some
}

// heal lets a node be reached again; it was told of nothing meanwhile, and is told of everything now.
func (f *fleet[S]) heal(n *node) { n.cut = false }

// thaw lets a node go on where it stood: its passes end before it knows of anything.
func (f *fleet[S]) thaw(n *node) {
	n.frozen = false
	for _, key := range n.holding() {
		if at := n.held[key]; at.running {
			n.ready = append(n.ready, at)
		}
	}
	f.endPasses(n)
}

func newNode(i int) *node { return &node{name: fmt.Sprintf("node-%04d", i), worker: i % workers} }

func (f *fleet[S]) join(count int) {
	for range count {
		n := newNode(len(f.nodes))
		f.nodes = append(f.nodes, n)
		f.start(n)
		f.report.Joined++
	}
}

// add makes all manifests.
func (f *fleet[S]) add() {
	for i := range f.size.Manifests {
		name := fmt.Sprintf("m%05d", i)
		key := f.plane.Kind() + "//" + name
		f.names = append(f.names, key)
		f.truth[key] = &truth{index: i}
		f.specify(name, key)
	}
}

func (f *fleet[S]) specify(name, key string) {
	at := f.truth[key]
	if err := f.plane.AddManifest(context.Background(), name, f.spec(at.index, at.generation)); err != nil {
		f.t.Fatalf("cannot add manifest %s: %v", name, err)
	}
	f.note(key)
}

// change gives some manifests another specification.
func (f *fleet[S]) change(count int) {
	for _, i := range f.rng.Perm(len(f.names))[:count] {
		key := f.names[i]
		if at := f.truth[key]; !at.deleted {
			at.generation++
			f.specify(fmt.Sprintf("m%05d", i), key)
		}
	}
}

// remove deletes some.
func (f *fleet[S]) remove(count int) {
	for _, i := range f.rng.Perm(len(f.names))[:count] {
		f.truth[f.names[i]].deleted = true
		if err := f.plane.Delete(context.Background(), fmt.Sprintf("m%05d", i)); err != nil {
			f.t.Fatalf("cannot delete a manifest: %v", err)
		}
	}
}

// chore is something to do at a time.
type chore struct {
	at    time.Duration
	order int
	do    func()
}

type chores []chore

// until does what is due.
func (c *chores) until(now time.Duration) {
	for len(*c) > 0 && (*c)[0].at <= now {
		heap.Pop(c).(chore).do()
	}
}

// Len, Less, Swap, Push and Pop are of heap.Interface.
func (c chores) Len() int { return len(c) }

// Less puts the earlier one first.
func (c chores) Less(i, j int) bool {
	return c[i].at < c[j].at || c[i].at == c[j].at && c[i].order < c[j].order
}

// Swap is of heap.Interface.
func (c chores) Swap(i, j int) { c[i], c[j] = c[j], c[i] }

// Push is of heap.Interface.
func (c *chores) Push(x any) { *c = append(*c, x.(chore)) }

// Pop is of heap.Interface.
func (c *chores) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}
