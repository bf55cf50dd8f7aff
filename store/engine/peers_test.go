package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/schema"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/test/wire"
)

// cluster is members in this process, each with an address of its own.
type cluster struct {
	t     *testing.T
	seats []*Seat
	logs  []*lines
	wires []*wire.Listener
	addrs []string
	cfgs  []Config
}

// lines keeps what is logged.
type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, string(b))
	return len(b), nil
}

func (l *lines) since(n int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.text[min(n, len(l.text)):]...)
}

func ipOf(i int) string { return fmt.Sprintf("127.0.0.%d", 11+i) }

// newCluster prepares n members without opening them.
func newCluster(t *testing.T, n int) *cluster {
	t.Helper()
	t.Parallel()
	c := &cluster{t: t}
	names := map[string]string{}
	for i := range n {
		l, err := net.Listen("tcp", ipOf(i)+":0")
		if err != nil {
			t.Fatal(err)
		}
		c.addrs = append(c.addrs, l.Addr().String())
		_ = l.Close()
		names[string(rune('a'+i))] = "http://" + c.addrs[i]
	}
	c.wires, c.seats, c.logs = make([]*wire.Listener, n), make([]*Seat, n), make([]*lines, n)
	for i := range n {
		c.logs[i] = &lines{}
		c.cfgs = append(c.cfgs, Config{Dir: t.TempDir(), NodeName: string(rune('a' + i)), Clock: supervision.RealClock(),
			Log: slog.New(slog.NewTextHandler(c.logs[i], &slog.HandlerOptions{Level: slog.LevelInfo})),
			Peers: &Peers{Listen: c.addrs[i], URL: "http://" + c.addrs[i], Source: ipOf(i), Cluster: names, Token: t.Name(),
				CompareEvery: 300 * time.Millisecond, Open: func() (net.Listener, error) {
					l, err := wire.Listen(c.addrs[i])
					c.wires[i] = l
					return l, err
				}}})
	}
	return c
}

// threeMembers are open and have a leader.
func threeMembers(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t, 3)
	c.open(0, 1, 2)
	return c
}

// open opens members together: each waits for the others.
func (c *cluster) open(members ...int) {
	c.t.Helper()
	var wg sync.WaitGroup
	for _, i := range members {
		c.seats[i] = NewSeat(c.cfgs[i])
		wg.Go(func() {
			if _, err := c.seats[i].Fill(context.Background()); err != nil {
				c.t.Errorf("member %d: %v", i, err)
			}
		})
		c.t.Cleanup(func() { c.close(i) })
	}
	wg.Wait()
	if c.t.Failed() {
		c.t.FailNow()
	}
}

func (c *cluster) close(i int) {
	if c.seats[i] == nil {
		return
	}
	if err := c.seats[i].Close(context.Background()); err != nil {
		c.t.Errorf("member %d: %v", i, err)
	}
	c.seats[i] = nil
}

func (c *cluster) member(i int) *Member { return c.seats[i].member.Load() }

// leader is the number of the member that leads.
func (c *cluster) leader() int {
	c.t.Helper()
	for range 200 {
		for i, s := range c.seats {
			if s != nil && c.member(i) != nil && c.member(i).Status().Leader {
				return i
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	c.t.Fatal("no leader")
	return -1
}

// isolate cuts a member off.
func (c *cluster) isolate(i int) {
	for o := range c.wires {
		if o != i {
			c.wires[o].Cut(ipOf(i))
			c.wires[i].Cut(ipOf(o))
		}
	}
}

func (c *cluster) mend() {
	for _, w := range c.wires {
		w.Mend()
	}
}

func (c *cluster) put(i int, key, value string) Result {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	write := func() (Result, error) {
		return c.seats[i].Txn(ctx, Write{Key: key, Expect: AnyRevision, Value: []byte(value)})
	}
	res, err := write()
	for errors.Is(err, ErrUnknown) && ctx.Err() == nil { // the leader went meanwhile; to write it twice does no harm here
		res, err = write()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return res
}

// get is a consistent read.
func (c *cluster) get(i int, key string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	rev, err := c.seats[i].Barrier(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	page, err := c.seats[i].Range(ctx, key, "", rev, 1)
	if err != nil || len(page.KVs) == 0 {
		c.t.Fatalf("%s: %v, %v", key, page, err)
	}
	return string(page.KVs[0].Value)
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); {
		if time.Now().After(end) {
			t.Fatalf("not within 20 s: %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestThreeMembersAreOneStore: what is written through one is read through each.
func TestThreeMembersAreOneStore(t *testing.T) {
	c := threeMembers(t)
	for i := range 3 {
		c.put(i, "/a", fmt.Sprint(i))
		for o := range 3 {
			if got := c.get(o, "/a"); got != fmt.Sprint(i) {
				t.Errorf("member %d reads %q, written was %d", o, got, i)
			}
		}
		if c.seats[i].Solo() {
			t.Errorf("member %d believes it is alone", i)
		}
	}
	if s := c.seats[0].Status(); s.Members != 3 {
		t.Errorf("got %+v", s)
	}
}

// TestP32_QuorumLossIsOneLine: the loss of the quorum, and its return, are one line each; meanwhile what needs it is refused within a
// second with the names of the missing, and the rest is served.
func TestP32_QuorumLossIsOneLine(t *testing.T) {
	c := threeMembers(t)
	c.put(0, "/a", "1")
	if got := c.get(0, "/a"); got != "1" {
		t.Fatal(got)
	}
	before := len(c.logs[0].since(0))
	c.close(1)
	c.close(2)
	eventually(t, "an outage", func() bool { return c.member(0).Outage() != nil })
	for range 2 {
		refusedInTime(t, c.seats[0])
		time.Sleep(time.Second)
	}
	if page, err := c.seats[0].Range(context.Background(), "/a", "", 0, 1); err != nil || len(page.KVs) != 1 {
		t.Errorf("a read of what is here: %v, %v", page, err)
	}
	said := c.logs[0].since(before)
	if len(said) != 1 || !strings.Contains(said[0], "lost its quorum") || !strings.Contains(said[0], "[b c]") {
		t.Errorf("the loss was told in %d lines: %s", len(said), said)
	}
	c.open(1)
	eventually(t, "the end of the outage to be told", func() bool { return len(c.logs[0].since(before)) > 1 })
	if said := c.logs[0].since(before); len(said) != 2 || !strings.Contains(said[1], "its quorum again") {
		t.Errorf("the return was told in %d lines: %s", len(said)-1, said[1:])
	}
}

// refusedInTime asks for what needs a quorum.
func refusedInTime(t *testing.T, s *Seat) {
	t.Helper()
	for what, f := range map[string]func(context.Context) error{
		"write": func(ctx context.Context) error {
			_, err := s.Txn(ctx, Write{Key: "/a", Expect: AnyRevision})
			return err
		},
		"consistent read": func(ctx context.Context) error { _, err := s.Barrier(ctx); return err },
		"lease":           func(ctx context.Context) error { _, err := s.Grant(ctx, 10); return err },
		"change of members": func(ctx context.Context) error {
			return s.Remove(ctx, c0(s))
		},
	} {
		begin := time.Now()
		err := f(context.Background())
		took := time.Since(begin)
		if !errors.Is(err, ErrNoQuorum) || !errors.Is(err, ErrStalled) || errors.Is(err, ErrUnknown) {
			t.Errorf("%s: got %v", what, err)
		} else if !strings.Contains(err.Error(), "b, c of 3 members missing") {
			t.Errorf("%s: the missing are not named: %v", what, err)
		}
		if took > time.Second {
			t.Errorf("%s: answered after %s", what, took)
		}
	}
}

func c0(s *Seat) uint64 { return s.Members()[1].ID }

// TestAWriteUnderWayAtTheLossIsUnknown: it does not hang, and is not said to be undone.
func TestAWriteUnderWayAtTheLossIsUnknown(t *testing.T) {
	c := threeMembers(t)
	l := c.leader()
	c.isolate(l)
	begin := time.Now()
	_, err := c.seats[l].Txn(context.Background(), Write{Key: "/a", Value: []byte("1")})
	took := time.Since(begin)
	if !errors.Is(err, ErrUnknown) || took > 12*time.Second {
		t.Errorf("got %v after %s", err, took)
	}
	c.mend()
	defer func() { t.Logf("unknown after %s, healed after another %s", took, time.Since(begin)-took) }()
	eventually(t, "writes again", func() bool {
		_, err := c.seats[l].Txn(context.Background(), Write{Key: "/b", Expect: AnyRevision})
		return err == nil
	})
}

// TestP30_MembersChange: a store that was alone is given an address, gets a second and a third member, and is alone again; the last member with a
// vote cannot be removed.
func TestP30_MembersChange(t *testing.T) {
	c := newCluster(t, 3)
	c.cfgs[0].Peers.Cluster = nil
	peers, called := c.cfgs[0].Peers, 0
	c.cfgs[0].Peers = nil
	c.cfgs[0].BeforeMembershipChange = func(context.Context) error { called++; return nil }
	c.open(0)
	c.put(0, "/a", "1")
	ctx := context.Background()
	if _, err := c.seats[0].AddLearner(ctx, "b", c.cfgs[1].Peers.URL); !errors.Is(err, ErrMembership) || !strings.Contains(err.Error(), "peer address") {
		t.Errorf("a member without an address takes another: %v", err)
	}
	c.close(0)
	c.cfgs[0].Peers = peers
	c.open(0)
	if !c.seats[0].Solo() {
		t.Error("a member that is alone does not know it")
	}
	for _, i := range []int{1, 2} {
		c.addMember(i)
	}
	for i := range 3 {
		if got := c.get(i, "/a"); got != "1" {
			t.Errorf("member %d reads %q", i, got)
		}
	}
	for _, i := range []int{2, 1} {
		removed := c.member(i)
		c.sure("remove", func() error { return c.seats[0].Remove(ctx, uint64(removed.server.MemberID())) })
		eventually(t, "the removed member to end", func() bool { return errors.Is(removed.Err(), ErrRemoved) })
		c.refusesRemoved(i)
	}
	eventually(t, "a member that is alone again to know it", func() bool { return c.seats[0].Solo() })
	if err := c.seats[0].Remove(ctx, c.seats[0].Members()[0].ID); !errors.Is(err, ErrMembership) || !strings.Contains(err.Error(), "last one with a vote") {
		t.Errorf("the last voter: %v", err)
	}
	c.put(0, "/a", "2")
	if called < 6 {
		t.Errorf("the hook was called %d times for 6 changes", called)
	}
}

// refusesRemoved opens a member that was removed once more.
func (c *cluster) refusesRemoved(i int) {
	c.t.Helper()
	c.close(i)
	begin := time.Now()
	if _, err := Open(context.Background(), c.cfgs[i]); !errors.Is(err, ErrRemoved) || errors.Is(err, ErrDamaged) || time.Since(begin) > 10*time.Second {
		c.t.Errorf("a removed member is opened: %v after %s", err, time.Since(begin))
	}
}

// TestRemovedWhileAway: a member that was removed while it did not run is told by the others when it comes back.
func TestRemovedWhileAway(t *testing.T) {
	c := threeMembers(t)
	id := uint64(c.member(2).server.MemberID())
	c.close(2)
	c.sure("remove", func() error { return c.seats[0].Remove(context.Background(), id) })
	c.refusesRemoved(2)
	c.put(1, "/a", "1")
}

// addMember adds one to the first and gives it a vote.
func (c *cluster) addMember(i int) {
	c.t.Helper()
	ctx := context.Background()
	var all map[string]string
	c.sure("add", func() (err error) {
		all, err = c.seats[0].AddLearner(ctx, c.cfgs[i].NodeName, c.cfgs[i].Peers.URL)
		return err
	})
	if c.seats[0].Solo() {
		c.t.Error("a member that has another believes it is alone")
	}
	c.cfgs[i].Peers.Cluster, c.cfgs[i].Peers.Join = all, true
	c.open(i)
	id := uint64(c.member(i).server.MemberID())
	c.sure("promote", func() error { return c.seats[i].Promote(ctx, id) })
	if err := c.seats[0].Promote(ctx, id); !errors.Is(err, ErrMembership) || !strings.Contains(err.Error(), "it has a vote already") {
		c.t.Errorf("promoted twice: %v", err)
	}
}

// sure repeats a change of members until they are sure enough of one another.
func (c *cluster) sure(what string, change func() error) {
	c.t.Helper()
	eventually(c.t, what, func() bool {
		err := change()
		if err != nil && !errors.Is(err, ErrMembership) {
			c.t.Fatalf("%s: %v", what, err)
		}
		return err == nil
	})
}

// TestAHookPreventsAChange of the members.
func TestAHookPreventsAChange(t *testing.T) {
	c := newCluster(t, 1)
	full := errors.New("no room for a copy")
	c.cfgs[0].BeforeMembershipChange = func(context.Context) error { return full }
	c.open(0)
	if _, err := c.seats[0].AddLearner(context.Background(), "b", "http://127.0.0.1:1"); !errors.Is(err, full) || len(c.seats[0].Members()) != 1 {
		t.Errorf("got %v", err)
	}
}

// TestAMemberOfSeveralNeedsAnAddress: opened without one it says so, rather than wait for a leader.
func TestAMemberOfSeveralNeedsAnAddress(t *testing.T) {
	c := threeMembers(t)
	c.close(0)
	cfg := c.cfgs[0]
	cfg.Peers = nil
	begin := time.Now()
	if _, err := Open(context.Background(), cfg); !errors.Is(err, errNotAlone) || time.Since(begin) > 5*time.Second {
		t.Errorf("got %v after %s", err, time.Since(begin))
	}
}

// TestP22_AlteredDatabaseIsNoticed: a member whose data was changed behind its back is found out, before it takes part when it was changed at
// rest, and soon when it runs. It serves no more; the others go on.
func TestP22_AlteredDatabaseIsNoticed(t *testing.T) {
	c := threeMembers(t)
	for i := range 20 {
		c.put(0, fmt.Sprintf("/registry/a/%d", i), "true")
	}
	time.Sleep(2 * c.cfgs[0].Peers.CompareEvery)
	for i := range 3 {
		if err := c.seats[i].Err(); err != nil {
			t.Fatalf("equal members: %v", err)
		}
	}
	eventually(t, "the member to have what is altered", func() bool { return alterRunning(c.member(1).server.Backend().BatchTx()) })
	c.put(0, "/registry/a/1", "more")
	eventually(t, "the altered member to end", func() bool { return c.seats[1].Err() != nil })
	foundOut(t, c.seats[1].Err(), c.cfgs[1].Dir, "a and c")
	c.put(0, "/registry/a/1", "and more")
	c.close(1)
	_, err := Open(context.Background(), c.cfgs[1])
	foundOut(t, err, c.cfgs[1].Dir, "a and c")
	c.put(2, "/registry/a/1", "and yet more")
	for _, i := range []int{0, 2} {
		if err := c.seats[i].Err(); err != nil {
			t.Errorf("member %d: %v", i, err)
		}
	}
}

// TestP22_NoMajorityIsAnAlarm: where nobody can say whose data is right, all go on and say so.
func TestP22_NoMajorityIsAnAlarm(t *testing.T) {
	c := newCluster(t, 2)
	for i := range c.cfgs {
		delete(c.cfgs[i].Peers.Cluster, "c")
	}
	c.open(0, 1)
	c.put(0, "/registry/a/7", "true")
	eventually(t, "the member to have what is altered", func() bool { return alterRunning(c.member(1).server.Backend().BatchTx()) })
	c.put(0, "/a", "1")
	for i := range 2 {
		eventually(t, "an alarm", func() bool { return c.seats[i].Status().Alarm != "" })
		if err := c.seats[i].Err(); err != nil {
			t.Errorf("member %d: %v", i, err)
		}
	}
	c.put(0, "/a", "2")
	time.Sleep(2 * c.cfgs[0].Peers.CompareEvery)
	for i := range 2 {
		if said := strings.Count(strings.Join(c.logs[i].since(0), ""), "data of members differs"); said != 1 {
			t.Errorf("member %d said it %d times", i, said)
		}
	}
	t.Log(c.seats[0].Status().Alarm)
}

func foundOut(t *testing.T, err error, dir, others string) {
	t.Helper()
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "not what "+others+" have") {
		t.Fatalf("got %v", err)
	}
	t.Log(err)
}

// alterRunning changes one stored value of a member, past its log, once the member has it.
func alterRunning(tx backend.BatchTx) bool {
	tx.Lock()
	defer tx.Unlock()
	var key, value []byte
	_ = tx.UnsafeForEach(schema.Key, func(k, v []byte) error {
		if bytes.Contains(v, []byte("/registry/a/7")) {
			key, value = bytes.Clone(k), bytes.Clone(v)
		}
		return nil
	})
	if key != nil {
		tx.UnsafePut(schema.Key, key, bytes.Replace(value, []byte("true"), []byte("fals"), 1))
	}
	return key != nil
}
