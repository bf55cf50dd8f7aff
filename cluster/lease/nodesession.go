package lease

import (
	"maps"
	"slices"
)

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
		awaited := n.stop.on && !n.stop.ended
		n.stop = stopping{began: n.now, on: true, ended: true}
		n.cancelAll(BecauseUnproven)
		if awaited { // whoever waits for the stop is to hear that it is over
			n.do(End{n.me})
		}
		return
	}
	n.proof.Answered(e.Seq)
}

// sessions replaces what is known of live sessions. A holder that has come back is left alone from now on.
func (n *Node) sessions(e Sessions) {
	if !slices.Equal(e.Live, n.named) {
		n.rename(e.Live)
	}
	if told := !e.Grace; told != n.told {
		n.told = told
		n.judgeAll()
	}
	n.present()
	// A verdict is of use while there is a session or a lease of its own.
	maps.DeleteFunc(n.dead, func(id SessionID, _ bool) bool {
		_, there := n.live[id]
		return !there && len(n.crowd.held(id)) == 0
	})
	n.takeAll()
}

// rename takes over the sessions that are named now, and judges those anew of which something else was said before.
func (n *Node) rename(live []Session) {
	before := n.named
	n.named = slices.Clone(live)
	slices.SortFunc(n.named, compareSessions)
	for _, s := range before {
		if at, still := slices.BinarySearchFunc(n.named, s, compareSessions); !still || n.named[at] != s {
			delete(n.live, s.ID)
			n.rejudge(s.ID)
		}
	}
	for _, s := range n.named {
		if n.live[s.ID] != s {
			n.live[s.ID] = s
			n.rejudge(s.ID)
		}
	}
}

func compareSessions(a, b Session) int { return a.ID.Compare(b.ID) }

// present lets an authority know at once that there is this session, if it does not.
func (n *Node) present() {
	if _, known := n.live[n.me]; !known && !n.proof.waits && !n.stop.ended {
		n.askRenewal()
	}
}

func (n *Node) verdict(v Verdict) {
	if v.Dead {
		n.dead[v.ID] = true
		n.rejudge(v.ID)
		n.takeAll()
		return
	}
	n.alive(v.ID)
}

// alive forgets that a session was declared dead.
func (n *Node) alive(id SessionID) {
	delete(n.dead, id)
	n.rejudge(id)
}

// rejudge notes that a session has become another. One that is live holds on to what it has from now on; one of which nothing is left
// is forgotten.
func (n *Node) rejudge(id SessionID) {
	n.crowd.seats = nil
	h := n.crowd.holders[id]
	if h == nil {
		return
	}
	if n.judge(h); h.why == 0 {
		h.spare()
	}
	if _, live := n.live[id]; !live && len(h.held) == 0 && h != n.crowd.nobody {
		n.forget(h)
	}
}
