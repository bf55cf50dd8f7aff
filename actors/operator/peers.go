package operator

import (
	"slices"
	"strings"

	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/cluster/lease"
)

// kindMark separates the node from the kind in the name of a session.
const kindMark = "@"

// sessionID names the session of a process for one kind. There is one for each kind, because processes need not all run the same kinds: a
// manifest is only for those to tend that run its kind, and the share of each is counted among them.
func sessionID(node, boot, kind string) lease.SessionID {
	return lease.SessionID{Node: node + kindMark + kind, Boot: boot}
}

// holderName is a session as users see it: node/boot.
func holderName(id lease.SessionID) string {
	if id == (lease.SessionID{}) {
		return ""
	}
	if i := strings.LastIndex(id.Node, kindMark); i >= 0 {
		id.Node = id.Node[:i]
	}
	return id.String()
}

// peers is a store as the session of one kind sees it: there are no sessions of other kinds.
type peers struct {
	storage.Store
	kind string
}

// WatchSessions implements storage.Store.
func (p peers) WatchSessions(notify func()) storage.SessionFeed {
	return peerFeed{p.Store.WatchSessions(notify), p}
}

type peerFeed struct {
	storage.SessionFeed
	of peers
}

// Take implements storage.SessionFeed.
func (f peerFeed) Take() (storage.Membership, bool) {
	m, any := f.SessionFeed.Take()
	m.Live = slices.DeleteFunc(slices.Clone(m.Live), func(s lease.Session) bool { return !f.of.has(s.ID) })
	m.Dead = slices.DeleteFunc(slices.Clone(m.Dead), func(id lease.SessionID) bool { return !f.of.has(id) })
	return m, any
}

func (p peers) has(id lease.SessionID) bool { return strings.HasSuffix(id.Node, kindMark+p.kind) }
