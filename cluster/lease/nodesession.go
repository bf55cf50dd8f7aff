package lease

import "maps"

func (n *Node) renew() {
	if !n.stop.ended && n.proof.Due(n.now) {
		n.askRenewal()
	}
}

func (n *Node) askRenewal() {
	n.do(Renew{Seq: n.proof.Ask(n.now), Session: Session{ID: n.me, Leaving: n.stop.on}})
}

func (n *Node) renewed(e Renewed) {
	if e.Ended {
		n.stop = stopping{began: n.now, on: true, ended: true}
		n.cancelAll(BecauseUnproven)
		return
	}
	n.proof.Answered(e.Seq)
}

// sessions replaces what is known of live sessions. A holder that has come back is left alone from now on.
func (n *Node) sessions(e Sessions) {
	clear(n.live)
	for _, s := range e.Live {
		n.live[s.ID] = s
		if !n.dead[s.ID] {
			n.spare(s.ID)
		}
	}
	n.told = !e.Grace
	n.present()
	// A verdict is of use while there is a session or a lease of its own.
	maps.DeleteFunc(n.dead, func(id SessionID, _ bool) bool {
		_, there := n.live[id]
		return !there && len(n.by[id]) == 0
	})
	n.takeAll()
}

// present lets an authority know at once that there is this session, if it does not.
func (n *Node) present() {
	if _, known := n.live[n.me]; !known && !n.proof.waits && !n.stop.ended {
		n.askRenewal()
	}
}

func (n *Node) verdict(v Verdict) {
	if v.Dead {
		n.dead[v.ID] = true
		n.takeAll()
		return
	}
	delete(n.dead, v.ID)
	if n.takeable(v.ID) == 0 {
		n.spare(v.ID)
	}
}

// spare forgets since when the leases of a holder have been takeable.
func (n *Node) spare(id SessionID) {
	for _, e := range n.by[id] {
		e.reason = 0
	}
}
