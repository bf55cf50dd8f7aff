package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"
)

var (
	// ErrMembership is returned when a change of the members is refused, and nothing was changed.
	ErrMembership = errors.New("the members stay as they are")
	// ErrRemoved is returned when the cluster has removed this member.
	ErrRemoved = errors.New("this member was removed from the cluster")
)

// MemberInfo is one member of a cluster.
type MemberInfo struct {
	ID      uint64
	Name    string // "" until it has run
	URL     string // how the others name it
	Learner bool   // it follows the log and has no vote
	Leader  bool
	Self    bool
}

// label is how a member is called in messages.
func (i MemberInfo) label() string {
	if i.Name == "" {
		return i.URL
	}
	return i.Name
}

// Members are the members as this one knows them, in the order of their names.
func (m *Member) Members() []MemberInfo {
	var all []MemberInfo
	for _, o := range m.server.Cluster().Members() {
		all = append(all, m.info(o))
	}
	slices.SortFunc(all, func(a, b MemberInfo) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.URL, b.URL)) })
	return all
}

func (m *Member) info(o *membership.Member) MemberInfo {
	i := MemberInfo{ID: uint64(o.ID), Name: o.Name, Learner: o.IsLearner, Leader: o.ID == m.server.Leader(), Self: o.ID == m.server.MemberID()}
	if len(o.PeerURLs) > 0 {
		i.URL = o.PeerURLs[0]
	}
	return i
}

// AddLearner tells the members of another one that will be reached at url. It returns what that one is to be opened with, as
// Peers.Cluster with Peers.Join, under the name it has there.
func (m *Member) AddLearner(ctx context.Context, name, url string) (map[string]string, error) {
	urls, err := types.NewURLs([]string{url})
	if err != nil {
		return nil, fmt.Errorf("cannot add member %s: %w", name, err)
	}
	what := "add member " + name
	if m.peers == nil {
		return nil, refuse(what, "this member has no address for others: restart it with a peer address first")
	}
	err = m.reconfigure(ctx, what, func(ctx context.Context) error {
		m.solo.Store(false) // before it can acknowledge anything
		now := m.clock.Now()
		_, err := m.server.AddMember(ctx, *membership.NewMemberAsLearner("", urls, "", &now))
		return err
	})
	if err != nil {
		return nil, err
	}
	cluster := map[string]string{name: url}
	for _, i := range m.Members() {
		if i.URL != url {
			cluster[i.label()] = i.URL
		}
	}
	return cluster, nil
}

// Promote gives a learner its vote, once it has caught up.
func (m *Member) Promote(ctx context.Context, id uint64) error {
	return m.reconfigure(ctx, "promote member "+m.label(id), func(ctx context.Context) error {
		_, err := m.server.PromoteMember(ctx, id)
		return err
	})
}

// Remove takes a member out of the cluster, unless the rest could not go on without it. A removed member ends with ErrRemoved, and its
// directory is of no use any more.
func (m *Member) Remove(ctx context.Context, id uint64) error {
	what := "remove member " + m.label(id)
	if m.lastVoter(id) {
		return refuse(what, "it is the last one with a vote, and the store would end with it")
	}
	return m.reconfigure(ctx, what, func(ctx context.Context) error {
		_, err := m.server.RemoveMember(ctx, id)
		return err
	})
}

func (m *Member) label(id uint64) string {
	for _, i := range m.Members() {
		if i.ID == id {
			return i.label()
		}
	}
	return types.ID(id).String()
}

func (m *Member) lastVoter(id uint64) bool {
	voters := m.voters()
	return len(voters) == 1 && voters[0].ID == id
}

func (m *Member) voters() []MemberInfo {
	return slices.DeleteFunc(m.Members(), func(i MemberInfo) bool { return i.Learner })
}

// reconfigure changes the members, after the hook for it has run.
func (m *Member) reconfigure(ctx context.Context, what string, change func(context.Context) error) error {
	m.membersMu.Lock()
	defer m.membersMu.Unlock()
	ctx, done, err := m.quorum.guard(ctx, m.clock)
	if err != nil {
		return fmt.Errorf("cannot %s: %w", what, err)
	}
	defer done()
	if m.before != nil {
		if err := m.before(ctx); err != nil {
			return fmt.Errorf("cannot %s: %w: what comes before a change of members failed: %w", what, ErrMembership, err)
		}
	}
	err = change(ctx)
	if err != nil {
		err = m.refusedChange(ctx, what, err)
		m.unsure = m.unsure || !errors.Is(err, ErrMembership)
		return err
	}
	m.log.Info("the members have changed", "by", what, "members", m.names())
	return nil
}

// reasons say what the library's refusals mean, and what to do.
var reasons = map[error]string{
	etcderrors.ErrUnhealthy: "too few of the others have answered for the last five seconds, and the change could cost the store its " +
		"quorum: try again in a moment, bring the missing members back, or remove them first",
	etcderrors.ErrNotEnoughStartedMembers: "a member that was added before has not been started: start it, or remove it",
	etcderrors.ErrLearnerNotReady:         "it has not caught up yet: try again in a moment",
	membership.ErrIDNotFound:              "there is no such member",
	membership.ErrIDRemoved:               "it has been removed already",
	membership.ErrIDExists:                "it is a member already",
	membership.ErrPeerURLexists:           "another member has that address",
	membership.ErrMemberNotLearner:        "it has a vote already",
	membership.ErrTooManyLearners:         "another one is still learning: promote or remove it first",
}

func (m *Member) refusedChange(ctx context.Context, what string, err error) error {
	for cause, reason := range reasons {
		if errors.Is(err, cause) || err.Error() == cause.Error() {
			return refuse(what, reason)
		}
	}
	if lost := context.Cause(ctx); errors.Is(lost, ErrNoQuorum) {
		err = lost
	}
	return fmt.Errorf("cannot %s: %w", what, m.translate(err))
}

func refuse(what, reason string) error {
	return fmt.Errorf("cannot %s: %s; %w", what, reason, ErrMembership)
}

func (m *Member) names() (names []string) {
	for _, i := range m.Members() {
		names = append(names, i.label())
	}
	return names
}

// recount notes that the others are gone. It keeps off while they are being changed, and when it is not known how a change has ended:
// another one counts from before it is added, because what is read here may not pass for all there is from then on.
func (m *Member) recount() {
	if m.solo.Load() || !m.membersMu.TryLock() {
		return
	}
	defer m.membersMu.Unlock()
	if !m.unsure && len(m.server.Cluster().Members()) == 1 {
		m.solo.Store(true)
	}
}

// claimURL tells the cluster where this member is reached now, when that has changed since it was last said.
func (m *Member) claimURL(ctx context.Context) error {
	if m.peers == nil {
		return nil
	}
	self := m.server.Cluster().Member(m.server.MemberID())
	if self == nil || slices.Equal(self.PeerURLs, []string{m.peers.URL}) {
		return nil
	}
	update := *self
	update.PeerURLs = []string{m.peers.URL}
	if _, err := m.server.UpdateMember(ctx, update); err != nil {
		return fmt.Errorf("cannot tell the members of the address %s: %w", m.peers.URL, err)
	}
	return nil
}

// others are the peer URLs of the other members by label.
func (m *Member) others() map[string]string {
	urls := map[string]string{}
	for _, i := range m.Members() {
		if !i.Self {
			urls[i.label()] = i.URL
		}
	}
	return urls
}

// sortedNames are the keys in their order.
func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Members are the members as the seated one knows them; none while the seat is empty.
func (s *Seat) Members() []MemberInfo {
	m, err := s.current()
	if err != nil {
		return nil
	}
	return m.Members()
}

// AddLearner is Member.AddLearner of the seated member.
func (s *Seat) AddLearner(ctx context.Context, name, url string) (map[string]string, error) {
	m, err := s.current()
	if err != nil {
		return nil, err
	}
	return m.AddLearner(ctx, name, url)
}

// Promote is Member.Promote of the seated member.
func (s *Seat) Promote(ctx context.Context, id uint64) error {
	m, err := s.current()
	if err != nil {
		return err
	}
	return m.Promote(ctx, id)
}

// Remove is Member.Remove of the seated member.
func (s *Seat) Remove(ctx context.Context, id uint64) error {
	m, err := s.current()
	if err != nil {
		return err
	}
	return m.Remove(ctx, id)
}

// Outage is the outage of the seated member, nil while there is none.
func (s *Seat) Outage() *Outage {
	if m := s.member.Load(); m != nil {
		return m.Outage()
	}
	return nil
}
