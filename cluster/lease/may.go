package lease

// May tells whether work that runs under a fence may still have an effect: its session is proven, nobody has called it off, and no write of it
// was refused. The answer holds for now only. It is for effects that nothing compares with the epoch; a store compares by itself.
func (n *Node) May(now Instant, f Fence) bool {
	e := n.running[f.Manifest]
	return e != nil && e.working == f.Epoch && f.Holder == n.me && !e.cancelled && e.fenced < f.Epoch && !n.proof.MustStop(now)
}

// Proven tells whether the node can prove its session well enough to start work.
func (n *Node) Proven(now Instant) bool { return n.proof.MayStart(now) }

// Holds gives the fence of a lease that the node holds and does not give back.
func (n *Node) Holds(manifest string) (Fence, bool) {
	e := n.find(manifest)
	if e == nil || !e.live || e.Holder != n.me || e.giving != 0 {
		return Fence{}, false
	}
	return n.fence(e), true
}

// Working counts the manifests in which work runs.
func (n *Node) Working() int { return len(n.running) }

// Busy tells whether work runs in a manifest.
func (n *Node) Busy(manifest string) bool { return n.running[manifest] != nil }

// Awaits tells whether the node still waits for the answer to a write. A write that it does not wait for any more, because the record has become
// another, need not be done.
func (n *Node) Awaits(w Write) bool {
	e := n.find(w.Manifest)
	return e != nil && e.waiting && e.Revision == w.Expected
}
