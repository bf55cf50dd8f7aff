package lease

// observe takes a record that is younger than what is known.
func (n *Node) observe(e *entry, s Stored) {
	if s.Revision <= e.Revision {
		return
	}
	old, was := n.fence(e), e.Holder == n.me
	n.out(e)
	e.Stored = s
	n.in(e)
	// Whatever this node had asked for expected the revision that is past.
	e.waiting, e.reason = false, 0
	n.handed(e, was)
	e.giving = 0
	delete(n.releasing, e.name)
	if was && (e.Holder != n.me || e.Epoch != old.Epoch) {
		// Who takes a lease from us lives, whatever is said. Two that believe each other dead would else take it in turns.
		n.alive(e.Holder)
		n.lose(e, old)
	}
	if e.Holder == n.me && (!was || e.Epoch != old.Epoch) {
		n.gain(e)
	}
	if n.stop.on {
		n.endIfLeft()
		return
	}
	n.takeSoon(e)
}

// handed keeps track of what this node has given away. Having to take it back means that the others are not what they seem.
func (n *Node) handed(e *entry, was bool) {
	switch {
	case e.Free():
		e.gave = e.gave || was && e.giving == BecauseShare
	case e.gave:
		e.gave = false
		if e.Holder == n.me {
			n.balance.shyUntil = n.now + shy
		}
	}
}

func (n *Node) lose(e *entry, old Fence) {
	delete(n.mine, e.name)
	if e.working == old.Epoch {
		n.cancel(e, BecauseTaken)
	}
	n.do(Lost{old})
}

func (n *Node) gain(e *entry) {
	n.mine[e.name] = e
	switch {
	case n.stop.on:
		n.release(e, BecauseStopping)
	case !e.live:
		n.release(e, BecauseGone)
	default:
		n.do(Gained{n.fence(e)})
	}
}

// answered takes the answer to a write. One that was refused is followed by the record that stood in its way, and is not tried again
// before; one whose outcome is unknown may be, because it cannot be done twice.
func (n *Node) answered(a Answered) {
	e := n.entry(a.Write.Manifest)
	switch {
	case a.Outcome == Applied:
		n.observe(e, Stored{Record: a.Write.Record, Revision: a.Revision})
	case a.Outcome == Unknown && a.Write.Expected == e.Revision:
		e.waiting = false
	}
}

func (n *Node) append(e *entry, next Record, why Reason) {
	e.asked, e.waiting = n.now, true
	n.do(Append{Write: Write{Manifest: e.name, Expected: e.Revision, Record: next}, Why: why})
}

// release gives a lease back. No work may run in it, and none is begun from now on.
func (n *Node) release(e *entry, why Reason) {
	e.giving = why
	n.releasing[e.name] = e
	n.append(e, e.Record.Released(), why)
}
