package lease

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

var me, other, third = SessionID{"a", "1"}, SessionID{"b", "1"}, SessionID{"c", "1"}

// rig is one node, whose writes are done at once unless held is set.
type rig struct {
	t       *testing.T
	node    *Node
	now     Instant
	records map[string]Stored
	// deaf keeps the authority from answering, mute loses all writes.
	deaf, mute bool
	done       []Action
}

func newRig(t *testing.T, manifests ...string) *rig {
	r := &rig{t: t, node: New(me), records: map[string]Stored{}}
	r.step(Tick{})
	r.step(Sessions{Live: []Session{{ID: me}}})
	for _, m := range manifests {
		r.step(Manifest{Name: m})
	}
	return r
}

// step feeds an event and answers the actions.
func (r *rig) step(e Event) {
	for _, a := range slices.Clone(r.node.Step(r.now, e)) {
		r.done = append(r.done, a)
		switch a := a.(type) {
		case Renew:
			if !r.deaf {
				r.step(Renewed{Seq: a.Seq})
			}
		case Append:
			if !r.mute {
				r.write(a.Write)
			}
		}
	}
}

func (r *rig) write(w Write) {
	old := r.records[w.Manifest]
	if err := CheckNext(old.Record, w.Record); err != nil || old.Revision != w.Expected {
		r.t.Fatalf("wrote %v over %v", w, old)
	}
	r.put(w.Manifest, w.Record)
}

// put stores a record and lets the node see it.
func (r *rig) put(m string, rec Record) {
	r.records[m] = Stored{rec, r.records[m].Revision + 1}
	r.step(Observed{m, r.records[m]})
}

// pass lets time pass with its ticks.
func (r *rig) pass(d time.Duration) {
	for end := r.now + d; r.now < end; {
		r.now += TickEvery
		r.step(Tick{})
	}
}

func (r *rig) start(m string) Fence {
	r.t.Helper()
	f, ok := r.node.Start(r.now, m)
	if !ok {
		r.t.Fatalf("cannot start %s", m)
	}
	return f
}

func (r *rig) cannotStart(m string) {
	r.t.Helper()
	if _, ok := r.node.Start(r.now, m); ok {
		r.t.Fatalf("%s was started", m)
	}
}

// did tells whether the action has come since the last time it was asked for.
func (r *rig) did(want Action) bool {
	i := slices.Index(r.done, want)
	if i >= 0 {
		r.done = r.done[i+1:]
	}
	return i >= 0
}

func TestFence(t *testing.T) {
	held := Record{Holder: me, Epoch: 3}
	for _, c := range []struct {
		fence Fence
		rec   Record
		ok    bool
	}{
		{Fence{"m", me, 3}, held, true},
		{Fence{"m", me, 2}, held, false},
		{Fence{"m", me, 4}, held, false},
		{Fence{"m", other, 3}, held, false},
		{Fence{"m", me, 3}, held.Released(), false},
		{Fence{"m", me, 3}, held.Taken(other), false},
		{Fence{"m", me, 3}, held.Restored(), false},
		{Fence{Manifest: "m"}, Record{}, false},
	} {
		if err := c.fence.Check(c.rec); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrFenced) {
			t.Errorf("%v at %v: %v", c.fence, c.rec, err)
		}
	}
}

// TestP09_NobodyWorksOnUnproven: a holder that cannot prove its session starts nothing and calls off what runs before the TTL is over; what
// it writes later is refused; and it releases nothing in which work still runs.
func TestP09_NobodyWorksOnUnproven(t *testing.T) {
	r := newRig(t, "m")
	f := r.start("m")
	r.deaf = true
	r.pass(startFor)
	r.step(Done{f})
	r.cannotStart("m")
	r.deaf = false
	r.pass(renewRetry)
	f = r.start("m")
	r.deaf = true
	r.pass(workFor + TickEvery)
	if !r.did(Cancel{f, BecauseUnproven}) || r.now >= startFor+renewRetry+TTL {
		t.Fatal("work was not called off in time")
	}
	r.step(Stop{})
	if r.records["m"].Free() {
		t.Fatal("released while work runs")
	}
	if err := f.Check(r.records["m"].Taken(other)); !errors.Is(err, ErrFenced) {
		t.Fatal(err)
	}
	r.step(Done{f})
	if !r.records["m"].Free() || !r.node.Ended() {
		t.Fatal("not released when work had ended")
	}
}

// TestP10_LeaseOfADeadNode: nothing but membership and time decides that a lease is taken over, and both do in time.
func TestP10_LeaseOfADeadNode(t *testing.T) {
	for _, c := range []struct {
		why Reason
		do  func(r *rig)
	}{
		{BecauseDead, func(r *rig) { r.step(Verdict{other, true}) }},
		{BecauseExpired, func(r *rig) { r.step(Sessions{Live: []Session{{ID: me}}}) }},
		{BecauseFree, func(r *rig) { r.put("m", r.records["m"].Released()) }},
	} {
		r := newRig(t)
		r.step(Sessions{Live: []Session{{ID: me}, {ID: other}}})
		r.put("m", Record{}.Taken(other))
		r.step(Manifest{Name: "m"})
		r.pass(time.Minute)
		if r.records["m"].Holder != other {
			t.Fatal("taken from a holder that lives")
		}
		c.do(r)
		r.pass(lastStep)
		if got := r.records["m"]; got.Holder != me || got.Epoch != 2 {
			t.Errorf("%s: the lease is %v", c.why, got)
		}
	}
}

// TestP11_LoseAndRegain: a node that has lost a lease a hundred times works on as soon as it has it again.
func TestP11_LoseAndRegain(t *testing.T) {
	r := newRig(t, "m")
	for range 100 {
		f := r.start("m")
		r.step(Sessions{Live: []Session{{ID: me}, {ID: other}}})
		r.put("m", r.records["m"].Taken(other))
		if !r.did(Cancel{f, BecauseTaken}) || !r.did(Lost{f}) {
			t.Fatal("not told of the loss")
		}
		r.step(Fenced{f})
		r.cannotStart("m")
		r.step(Done{f})
		r.step(Verdict{other, true})
		r.pass(lastStep)
		r.step(Done{r.start("m")})
		r.step(Verdict{other, false})
	}
	if len(r.node.running) != 0 || len(r.node.entries) != 1 || r.records["m"].Epoch != 201 {
		t.Fatalf("left over: %d running, %d entries, epoch %d", len(r.node.running), len(r.node.entries), r.records["m"].Epoch)
	}
}

// TestP14_ShortCut: a node that was cut off for less than the TTL goes on under the epoch it had.
func TestP14_ShortCut(t *testing.T) {
	r := newRig(t, "m")
	epoch := r.records["m"].Epoch
	r.deaf = true
	r.pass(TTL - renewRetry)
	r.cannotStart("m")
	r.deaf = false
	r.pass(renewRetry)
	if f := r.start("m"); f.Epoch != epoch {
		t.Fatalf("went on under epoch %d, had %d", f.Epoch, epoch)
	}
}

// TestF096_RebootTakesItsOwn: a new boot of a node takes at once what an earlier one held.
func TestF096_RebootTakesItsOwn(t *testing.T) {
	r := newRig(t)
	old := SessionID{me.Node, "0"}
	r.step(Sessions{Live: []Session{{ID: me}, {ID: old}}})
	r.put("m", Record{}.Taken(old))
	r.step(Manifest{Name: "m"})
	if r.records["m"].Holder != me {
		t.Fatalf("held by %s", r.records["m"].Holder)
	}
}

// TestF097_NewNodeGetsItsShare: a node gives a new one its share, in batches, but nothing in which work runs.
func TestF097_NewNodeGetsItsShare(t *testing.T) {
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprint("m", i))
	}
	r := newRig(t, names...)
	busy := map[string]Fence{}
	for _, m := range names[:30] {
		busy[m] = r.start(m)
	}
	r.step(Sessions{Live: []Session{{ID: me}, {ID: other}}})
	r.pass(settle + TickEvery)
	if given := 40 - r.node.Held(); given == 0 || given > batchLeast {
		t.Fatalf("%d given in one batch", given)
	}
	for range 20 {
		for _, m := range names {
			if s := r.records[m]; s.Free() {
				r.put(m, s.Taken(other))
			}
		}
		r.pass(TickEvery)
	}
	if r.node.Held() != 30 {
		t.Fatalf("holds %d, works on 30", r.node.Held())
	}
	for m, f := range busy {
		if r.records[m].Holder != me {
			t.Fatalf("%s was moved in the middle of work", m)
		}
		r.step(Done{f})
	}
	for range 20 {
		r.pass(TickEvery)
		for _, m := range names {
			if s := r.records[m]; s.Free() {
				r.put(m, s.Taken(other))
			}
		}
	}
	if r.node.Held() != 20 {
		t.Fatalf("holds %d of 40, among two", r.node.Held())
	}
}

// TestF100_GracefulStop: what is idle is released at once, what works when it has ended, and what will not end is left to its epoch.
func TestF100_GracefulStop(t *testing.T) {
	r := newRig(t, "idle", "busy", "stuck")
	busy, stuck := r.start("busy"), r.start("stuck")
	r.step(Stop{})
	if !r.records["idle"].Free() || !r.did(Cancel{busy, BecauseStopping}) {
		t.Fatal("did not begin to stop")
	}
	r.step(Done{busy})
	if !r.records["busy"].Free() || r.node.Ended() {
		t.Fatal("busy was not released, or the session ended too early")
	}
	r.pass(StopWait)
	if !r.did(End{me}) || r.records["stuck"].Free() {
		t.Fatal("did not end, or released what works")
	}
	r.step(Done{stuck})
	r.cannotStart("idle")
}

// TestPlacement: a node that comes or goes moves only what is its own, and nobody gets much more than others.
func TestPlacement(t *testing.T) {
	best := func(nodes []string, m string) string {
		return slices.MaxFunc(nodes, func(a, b string) int {
			if Score(a, m) < Score(b, m) {
				return -1
			}
			return 1
		})
	}
	nodes := []string{"n1", "n2", "n3", "n4"}
	got := map[string]int{}
	for i := range 10_000 {
		m := fmt.Sprint("default/m", i)
		four, three := best(nodes, m), best(nodes[:3], m)
		got[four]++
		if four != "n4" && four != three {
			t.Fatalf("%s moved from %s to %s", m, three, four)
		}
	}
	for n, held := range got {
		if held < 2300 || held > 2700 {
			t.Errorf("%s gets %d of 10000", n, held)
		}
	}
}

// TestSurplus: who gives how many, where all see the same.
func TestSurplus(t *testing.T) {
	for _, c := range []struct{ held, gives []int }{
		{[]int{4, 0, 0}, []int{2, 0, 0}},
		{[]int{2, 2, 0}, []int{1, 0, 0}},
		{[]int{3, 3, 3, 1}, []int{1, 0, 0, 0}},
		{[]int{2, 1, 1}, []int{0, 0, 0}},
		{[]int{0, 5}, []int{0, 2}},
	} {
		var seats []seat
		sum := 0
		for i, held := range c.held {
			seats = append(seats, seat{SessionID{fmt.Sprint(i), "1"}, held})
			sum += held
		}
		for i, want := range c.gives {
			if got := shareOf(sum, len(seats)).surplus(seats, 0, seats[i].id); got != want {
				t.Errorf("%v: %d gives %d, want %d", c.held, i, got, want)
			}
		}
	}
}

func TestAuthority(t *testing.T) {
	a := NewAuthority(0, me, SessionID{})
	if err := a.Renew(TTL-1, other, false); err != nil || len(a.sorted()) != 2 || !a.Sessions(TTL-1).Grace {
		t.Fatal("no grace", err)
	}
	if !a.Expire(TTL) || len(a.sorted()) != 1 || a.Sessions(TTL).Grace {
		t.Fatal("the grace does not end")
	}
	_ = a.Renew(TTL, other, true)
	_ = a.Renew(TTL, other, false)
	if !a.sorted()[0].Leaving {
		t.Fatal("a late renewal took back that the node leaves")
	}
	a.End(TTL, other)
	if err := a.Renew(TTL+1, other, false); !errors.Is(err, ErrSessionEnded) || len(a.sorted()) != 0 {
		t.Fatal("an ended session came back", err)
	}
	if a.Expire(TTL + tombstoneFor); len(a.ended) != 0 {
		t.Fatal("ended sessions are kept for ever")
	}
}

// TestProof: what counts is when a renewal was asked for, and only the last one.
func TestProof(t *testing.T) {
	var p Proof
	first := p.Ask(0)
	second := p.Ask(time.Second)
	if p.Answered(first); p.MayStart(time.Second) {
		t.Fatal("an old answer counted")
	}
	p.Answered(second)
	if !p.MayStart(startFor) || p.MayStart(time.Second+startFor) || p.MustStop(workFor) || !p.MustStop(time.Second+workFor) {
		t.Fatal("counted from another moment than when it was asked for")
	}
}

// TestGrace: while an authority is new, a holder it does not name is left alone, and who is not named makes itself known.
func TestGrace(t *testing.T) {
	r := newRig(t)
	r.put("m", Record{}.Taken(other))
	r.step(Sessions{Live: []Session{{ID: me}}, Grace: true})
	r.step(Manifest{Name: "m"})
	r.pass(TTL)
	if r.records["m"].Holder != other {
		t.Fatal("taken from a holder the authority has not heard of yet")
	}
	r.done = nil
	r.step(Sessions{Grace: true})
	if len(r.done) != 1 {
		t.Fatalf("did %v, want a renewal", r.done)
	}
	r.step(Sessions{Live: []Session{{ID: me}}})
	if r.records["m"].Holder != me {
		t.Fatal("not taken when the grace was over")
	}
}

// TestP14_MutualVerdicts: two nodes that believe each other dead do not take a lease from each other in turns.
func TestP14_MutualVerdicts(t *testing.T) {
	r := newRig(t, "m")
	r.step(Sessions{Live: []Session{{ID: me}, {ID: other}}})
	r.step(Verdict{other, true})
	r.put("m", r.records["m"].Taken(other))
	r.pass(TTL)
	if r.records["m"].Holder != other {
		t.Fatal("taken back from a node that has just shown that it lives")
	}
}

// TestObserved: a record that is older than what is known changes nothing, by whatever way it comes.
func TestObserved(t *testing.T) {
	r := newRig(t, "m")
	mine := r.records["m"]
	r.step(Sessions{Live: []Session{{ID: me}, {ID: other}}})
	r.put("m", mine.Taken(other))
	r.step(Observed{"m", mine})
	r.step(Answered{Write: Write{Manifest: "m", Record: mine.Record}, Outcome: Applied, Revision: mine.Revision})
	r.cannotStart("m")
}

// TestShy: a node that had to take back what it gave away gives nothing for a while.
func TestShy(t *testing.T) {
	r := newRig(t, "m1", "m2")
	r.step(Sessions{Live: []Session{{ID: me}, {ID: other}}})
	r.pass(settle + batchEvery)
	if r.node.Held() != 1 {
		t.Fatalf("holds %d, want to have given one away", r.node.Held())
	}
	r.pass(lastStep + stepAside)
	if r.node.Held() != 2 {
		t.Fatalf("holds %d, want to have taken it back", r.node.Held())
	}
	r.done = nil
	r.pass(shy - lastStep)
	for _, a := range r.done {
		if _, wrote := a.(Append); wrote {
			t.Fatalf("tried again: %v", a)
		}
	}
	r.pass(3 * lastStep)
	if !slices.ContainsFunc(r.done, func(a Action) bool { w, ok := a.(Append); return ok && w.Why == BecauseShare }) {
		t.Fatal("has not tried again")
	}
}

// TestLostWrites: a write of which nothing is heard is done again, and so is one whose outcome is said to be unknown.
func TestLostWrites(t *testing.T) {
	r := newRig(t)
	r.mute = true
	r.step(Manifest{Name: "m"})
	first := Append{Write{"m", 0, Record{}.Taken(me)}, BecauseFree}
	if !r.did(first) {
		t.Fatal("not taken")
	}
	r.pass(answerWithin - TickEvery)
	if r.did(first) {
		t.Fatal("not waited for the answer")
	}
	r.pass(TickEvery)
	if !r.did(first) {
		t.Fatal("not tried again")
	}
	r.step(Answered{Write: first.Write})
	r.pass(TickEvery)
	if !r.did(first) {
		t.Fatal("not tried again when the outcome was unknown")
	}
}

// TestP09_FencedBeforeTold: a node that learns by a refused write that it has lost a lease begins nothing under that epoch any more.
func TestP09_FencedBeforeTold(t *testing.T) {
	r := newRig(t, "m")
	f := r.start("m")
	r.step(Fenced{f})
	if !r.did(Cancel{f, BecauseTaken}) {
		t.Fatal("not called off")
	}
	r.step(Done{f})
	r.cannotStart("m")
}

// TestEarlierBoots: of two sessions of one node the one that was heard of first gets no more leases.
func TestEarlierBoots(t *testing.T) {
	a := NewAuthority(0)
	again := SessionID{me.Node, "2"}
	_, _ = a.Renew(0, me, false), a.Renew(0, again, false)
	if got := a.sorted(); !got[0].Leaving || got[1].Leaving {
		t.Fatalf("the sessions are %v", got)
	}
}

// TestSessionEndedByOthers: a node whose session was ended calls off all work and does nothing more.
func TestSessionEndedByOthers(t *testing.T) {
	r := newRig(t, "m")
	f := r.start("m")
	r.step(Renewed{Ended: true})
	if !r.did(Cancel{f, BecauseUnproven}) || !r.node.Ended() {
		t.Fatal("goes on")
	}
	r.step(Done{f})
	r.cannotStart("m")
	r.done = nil
	if r.pass(TTL); len(r.done) != 0 {
		t.Fatalf("did %v", r.done)
	}
}

// TestSpared: a verdict that is withdrawn and spoken again begins anew, also for those whose turn it is not.
func TestSpared(t *testing.T) {
	r := newRig(t)
	m := "m0"
	for i := 0; Score(third.Node, m) < Score(me.Node, m); i++ {
		m = fmt.Sprint("m", i)
	}
	r.step(Sessions{Live: []Session{{ID: me}, {ID: other}, {ID: third}}})
	r.put(m, Record{}.Taken(other))
	r.step(Manifest{Name: m})
	r.step(Verdict{other, true})
	r.step(Verdict{other, false})
	r.pass(time.Minute)
	r.step(Verdict{other, true})
	if r.records[m].Holder != other {
		t.Fatal("taken at once, though it suits another node better")
	}
	if r.pass(lastStep); r.records[m].Holder != me {
		t.Fatal("not taken though the other node did not")
	}
}

// TestLeavingIsOverWhenEndedByOthers: who waits for a graceful stop hears of its end also when the authority ended the session meanwhile.
func TestLeavingIsOverWhenEndedByOthers(t *testing.T) {
	r := newRig(t, "m")
	f := r.start("m")
	r.step(Stop{})
	r.step(Renewed{Ended: true})
	if !r.did(End{me}) || !r.node.Ended() {
		t.Fatalf("did %v", r.done)
	}
	r.done = nil
	r.step(Done{f})
	if r.pass(TTL); len(r.done) != 0 {
		t.Fatalf("did %v", r.done)
	}
}
