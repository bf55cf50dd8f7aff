package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/server/v3/etcdserver"
)

const (
	// compareEvery is how often members compare their states, compareFirst how soon after the start they first do.
	compareEvery = 5 * time.Minute
	compareFirst = 30 * time.Second
	// compareFor bounds the wait for the hash of another member, which reads its whole database.
	compareFor = 30 * time.Second
)

// state is what of a member's data is compared: everything it keeps of the history up to a revision.
type state struct {
	hash      uint32
	compacted int64
}

// opinion is the states of members at one revision: of this one, and of the others that have told theirs.
type opinion struct {
	revision int64
	own      state
	others   map[string]state
}

func (m *Member) compareEvery() time.Duration {
	if d := m.peers.CompareEvery; d > 0 {
		return d
	}
	return compareEvery
}

// compareBeside compares in a goroutine of its own, one at a time: others may take long to answer.
func (m *Member) compareBeside() {
	if m.Solo() || m.Outage() != nil || !m.comparing.CompareAndSwap(false, true) {
		return
	}
	m.group.Go("compare members", func(ctx context.Context) error { m.compare(ctx); return nil }, func(error) { m.comparing.Store(false) })
}

// compare asks the others for their state at the revision of this one. Identical logs make identical states: one that is alone with
// its own has been altered, and serves no more.
func (m *Member) compare(ctx context.Context) {
	if m.server.KV().Rev() == m.compared {
		return
	}
	o, err := m.opinions(ctx)
	if err != nil {
		m.log.Warn("the states of the members could not be compared", "reason", err)
		return
	}
	same, differ := o.split()
	if len(differ) == 0 {
		m.disagree.Store(nil)
		if len(same) == len(m.others()) {
			m.compared = o.revision
		}
		return
	}
	if err := m.verdict(o); err != nil {
		m.log.Error("this member's data is not what the others have", "reason", err)
		m.failed.set(err)
		return
	}
	if m.disagree.Swap(&differ) == nil {
		m.log.Error("the data of members differs", "revision", o.revision, "differ", differ, "agree", same)
	}
}

// alarm says that members differ and none of them is known to be wrong.
func (m *Member) alarm() string {
	differ := m.disagree.Load()
	if differ == nil {
		return ""
	}
	return "the data of this member differs from that of " + strings.Join(*differ, ", ") +
		", and no majority says who is right: save a snapshot of each, and build the store anew from the one that is"
}

// opinions collects the states.
func (m *Member) opinions(ctx context.Context) (opinion, error) {
	h, _, err := m.server.KV().HashStorage().HashByRev(m.server.KV().Rev())
	if err != nil {
		return opinion{}, err
	}
	o := opinion{revision: h.Revision, own: state{h.Hash, h.CompactRevision}, others: map[string]state{}}
	for name, url := range m.others() {
		if s, err := m.stateOf(ctx, url, h.Revision); err == nil {
			o.others[name] = s
		}
	}
	return o, nil
}

func (m *Member) stateOf(ctx context.Context, url string, revision int64) (state, error) {
	ctx, cancel := context.WithTimeout(ctx, compareFor)
	defer cancel()
	resp, err := etcdserver.HashByRev(ctx, m.server.Cluster().ID(), m.peerClient, url, revision)
	if err != nil {
		return state{}, err
	}
	return state{resp.Hash, resp.CompactRevision}, nil
}

// split sorts the others into those that have the same as this one and those that differ. One that has forgotten more or less cannot be
// compared, and is neither.
func (o opinion) split() (same, differ []string) {
	for _, name := range sortedNames(o.others) {
		switch s := o.others[name]; {
		case s == o.own:
			same = append(same, name)
		case s.compacted == o.own.compacted:
			differ = append(differ, name)
		}
	}
	return same, differ
}

// majority are the members that agree on a state other than this one's and are more than half of all.
func (o opinion) majority(members int) []string {
	by := map[state][]string{}
	for name, s := range o.others {
		if s != o.own && s.compacted == o.own.compacted {
			by[s] = append(by[s], name)
		}
	}
	for _, names := range by {
		if len(names) > members/2 {
			slices.Sort(names)
			return names
		}
	}
	return nil
}

// verdict is the error with which this member ends, if most of the others agree that it is the one that is wrong.
func (m *Member) verdict(o opinion) error {
	right := o.majority(len(m.Members()))
	if right == nil {
		return nil
	}
	return fmt.Errorf("%s is %w: at revision %d its data is not what %s have; remove this member from the cluster, "+
		"remove the directory, and let it join anew", m.dir, ErrDamaged, o.revision, strings.Join(right, " and "))
}

// compareAtStart refuses a member that differs from the others, before it takes part.
func (m *Member) compareAtStart(ctx context.Context) error {
	o, err := m.opinions(ctx)
	if err != nil {
		return err
	}
	return m.verdict(o)
}
