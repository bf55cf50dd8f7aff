package lease

func (n *Node) cancel(e *entry, why Reason) {
	if e.cancelled {
		return
	}
	e.cancelled = true
	n.do(Cancel{Fence: Fence{Manifest: e.name, Holder: n.me, Epoch: e.working}, Why: why})
}

func (n *Node) cancelAll(why Reason) {
	for _, e := range inOrder(n.running) {
		n.cancel(e, why)
	}
}

// done frees a manifest for the next work, or its lease for others.
func (n *Node) done(f Fence) {
	e := n.running[f.Manifest]
	if e == nil || e.working != f.Epoch {
		return
	}
	delete(n.running, e.name)
	e.working, e.cancelled = 0, false
	switch {
	case e.Holder != n.me || n.stop.ended || e.giving != 0:
	case n.stop.on:
		n.release(e, BecauseStopping)
	case !e.live:
		n.release(e, BecauseGone)
	}
}

// abandoned frees a manifest of work that would not end, under another epoch: that work may still be about to write.
func (n *Node) abandoned(f Fence) {
	e := n.running[f.Manifest]
	if e == nil || e.working != f.Epoch {
		return
	}
	n.done(f)
	if e.Holder == n.me && e.giving == 0 && !n.stop.ended {
		n.release(e, BecauseAbandoned)
	}
}

// wasFenced takes note that an epoch is past, before the watch tells.
func (n *Node) wasFenced(f Fence) {
	e := n.entry(f.Manifest)
	e.fenced = max(e.fenced, f.Epoch)
	if e.working == f.Epoch && f.Epoch != 0 {
		n.cancel(e, BecauseTaken)
	}
}

// leave begins a graceful stop.
func (n *Node) leave() {
	if n.stop.on {
		return
	}
	n.stop = stopping{began: n.now, on: true}
	n.askRenewal()
	n.cancelAll(BecauseStopping)
	for _, e := range inOrder(n.mine) {
		if e.working == 0 && e.giving == 0 {
			n.release(e, BecauseStopping)
		}
	}
	n.endIfLeft()
}

func (n *Node) endIfLeft() {
	if !n.stop.ended && (len(n.mine) == 0 || n.stop.overdue(n.now)) {
		n.stop.ended = true
		n.do(End{n.me})
	}
}
