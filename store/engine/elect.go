package engine

import (
	"context"
	"expvar"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

const (
	// electEvery is how often a member that is alone looks whether it can be told to lead, or does.
	electEvery = 2 * time.Millisecond
	// raftStatus is the name under which the library publishes what raft itself knows, of the member that was started last.
	raftStatus = "raft.status"
)

// elect makes a member that is alone lead at once. By itself it would only after a tick or two, and its ticks are rare.
//
// What it is sent is what a leader sends that hands over to it. It returns without having made it lead when ctx ends, when the member has
// failed, and when there are others, who have to be asked.
func (m *Member) elect(ctx context.Context) {
	if m.peers != nil || len(m.server.Cluster().Members()) != 1 {
		return
	}
	self := uint64(m.server.MemberID())
	for uint64(m.server.Leader()) == raft.None && m.failed.get() == nil {
		if electable(self) {
			_ = m.server.Process(ctx, &raftpb.Message{Type: raftpb.MsgTimeoutNow.Enum(), From: &self, To: &self})
		}
		if m.clock.Sleep(ctx, electEvery) != nil {
			return
		}
	}
}

// electable tells whether raft knows that everything it has committed was applied: before, it would look through those entries for changes of
// the members, and end if they were compacted meanwhile. Without a leader nothing more is committed. Of a member that was not the last to be
// started in this process it is not known: that one leads when its ticks say so.
func electable(member uint64) bool {
	published, ok := expvar.Get(raftStatus).(expvar.Func)
	if !ok {
		return false
	}
	st, ok := published.Value().(raft.Status)
	return ok && st.ID == member && st.Applied > 0 && st.Applied >= st.GetCommit()
}
