package gossip

import (
	"sync/atomic"

	"github.com/hashicorp/memberlist"
)

// delegate is what memberlist calls. It runs on the packet loop or under the lock of the
// members, so it neither blocks nor asks anything back.
type delegate struct {
	meta    atomic.Pointer[[]byte]
	changed func()
}

// NodeMeta gives memberlist this host's encoded metadata; limit was checked when it was encoded.
func (d *delegate) NodeMeta(int) []byte { return *d.meta.Load() }

// NotifyMsg ignores user messages: there are none.
func (d *delegate) NotifyMsg([]byte) {}

// GetBroadcasts has nothing to send.
func (d *delegate) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState has no state to exchange.
func (d *delegate) LocalState(bool) []byte { return nil }

// MergeRemoteState ignores the state of others.
func (d *delegate) MergeRemoteState([]byte, bool) {}

// NotifyJoin tells that the list has changed.
func (d *delegate) NotifyJoin(*memberlist.Node) { d.changed() }

// NotifyLeave tells that the list has changed.
func (d *delegate) NotifyLeave(*memberlist.Node) { d.changed() }

// NotifyUpdate tells that the list has changed.
func (d *delegate) NotifyUpdate(*memberlist.Node) { d.changed() }
