package lease

import "slices"

// view is what a node believes of the others.
type view struct {
	me   SessionID
	live map[SessionID]Session
	dead map[SessionID]bool
	// named are the live ones in order.
	named []Session
	// told is set once the authority has named all live sessions: until then nobody is known to have expired.
	told bool
}

// takeable tells why the lease may be taken by the node, or 0. Neither answer has to be true: the store compares, and the fence
// makes an error harmless.
func (v *view) takeable(holder SessionID) Reason {
	switch _, live := v.live[holder]; {
	case holder == SessionID{}:
		return BecauseFree
	case holder == v.me:
		return 0
	case holder.Node == v.me.Node:
		// The data directory is locked by this process, so the other one is no more.
		return BecauseReboot
	case v.dead[holder]:
		return BecauseDead
	case v.told && !live:
		return BecauseExpired
	}
	return 0
}

// candidates are the sessions that may hold leases, in order; the node itself is one while it may.
func (v *view) candidates(me bool) []SessionID {
	ids := make([]SessionID, 0, len(v.named)+1)
	for _, s := range v.named {
		if s.ID.Node != v.me.Node && !s.Leaving && !v.dead[s.ID] {
			ids = append(ids, s.ID)
		}
	}
	if at, _ := slices.BinarySearchFunc(ids, v.me, SessionID.Compare); me {
		ids = slices.Insert(ids, at, v.me)
	}
	return ids
}
