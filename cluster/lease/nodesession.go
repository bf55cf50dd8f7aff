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
		n.stop = stopping{began: n.now, on: true, ended: true}
		n.cancelAll(BecauseUnproven)
		return
	}
	n.proof.Answered(e.Seq)
}

// sessions replaces what is known of live sessions. A holder that has come back is left alone from now on.
func (n *Node) sessions(e Sessions) {
	if told := !e.Grace; told != n.told || !slices.Equal(e.Live, n.named) {
		n.told, n.named = told, slices.Clone(e.Live)
		n.rename()
	}
	n.present()
	// A verdict is of use while there is a session or a lease of its own.
	maps.DeleteFunc(n.dead, func(id SessionID, _ bool) bool {
		_, there := n.live[id]
		return !there && len(n.crowd.held(id)) == 0
	})
	n.takeAll()
}

// rename takes over the sessions that were named.
func (n *Node) rename() {
	clear(n.live)
	for _, s := range n.named {
		n.live[s.ID] = s
		if h := n.crowd.holders[s.ID]; h != nil && !n.dead[s.ID] {
			h.spare()
		}
	}
	n.judgeAll()
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
	if h := n.crowd.holders[id]; h != nil && h.why == 0 {
		h.spare()
	}
}

// rejudge notes that a session has become another.
func (n *Node) rejudge(id SessionID) {
	n.crowd.seats = nil
	if h := n.crowd.holders[id]; h != nil {
		n.judge(h)
	}
}
