package core

import "time"

// State is where a child is in its life.
type State uint8

// The states of a child.
const (
	// Idle children were never started, or were stopped on purpose.
	Idle State = iota
	Starting
	Running
	Stopping
	// BackingOff children wait for their next start.
	BackingOff
	// Parked children used up their budget and are retried at the capped back-off.
	Parked
	// Dead children stay down by policy.
	Dead
	// Done children ended normally and are not to be started again.
	Done
)

var stateNames = [...]string{"idle", "starting", "running", "stopping", "backing-off", "parked", "dead", "done"}

// String is the state as shown to people.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// EventKind names what happened.
type EventKind uint8

// The events of a group.
const (
	// GroupStart and GroupStop begin and end the whole group.
	GroupStart EventKind = iota + 1
	GroupStop
	// ChildReady acknowledges a start.
	ChildReady
	// ChildFault reports a fault; the child takes no further message.
	ChildFault
	// ChildExited reports that nothing of the child runs any more.
	ChildExited
	// StopElapsed reports that a stop took longer than the child's StopTimeout.
	StopElapsed
	// BackoffElapsed ends a wait.
	BackoffElapsed
	// ChildRestart asks for a new generation by hand.
	ChildRestart
	// ZombieReturned reports that an abandoned generation of the group has ended after all.
	ZombieReturned
	// GroupFault fails the group upward because too much was abandoned somewhere below it.
	GroupFault
)

// Event is one thing that happened to the group. Child is the index of the child; Gen its
// generation; Normal marks an exit without a fault.
type Event struct {
	Kind   EventKind
	Child  int
	Gen    uint64
	Fault  FaultKind
	Normal bool
}

// ActionKind names what the supervisor has to do.
type ActionKind uint8

// The actions of a group.
const (
	// StartChild makes and starts the generation Gen of Child.
	StartChild ActionKind = iota + 1
	// StopChild asks Child to stop and arms StopElapsed.
	StopChild
	// AbandonChild fences Child and forgets it.
	AbandonChild
	// Wait arms BackoffElapsed after Delay.
	Wait
	// GroupReady tells that the group has started.
	GroupReady
	// GroupStopped tells that nothing of the group runs any more.
	GroupStopped
	// Escalate fails the supervisor with the fault of Child, after GroupStopped.
	Escalate
	// GroupDone follows GroupStopped when the group ended by itself without a fault, because
	// a significant child came to its normal end.
	GroupDone
)

// Action is one thing to do.
type Action struct {
	Kind  ActionKind
	Child int
	Gen   uint64
	Delay time.Duration
	Fault FaultKind
	// Overrun tells of an Escalate that too many children would not stop, whatever Child
	// failed of before.
	Overrun bool
}

// Child is what a group knows of one child.
type Child struct {
	Spec     ChildSpec
	State    State
	Gen      uint64
	Restarts int
	// Since is when State was entered, NextTry when a waiting child is started again.
	Since, NextTry time.Time
	// failures in a row of each kind, for the back-off; broken is when the trouble began that
	// has not been repaired yet.
	failures [NumFaultKinds]int
	broken   time.Time
	// up is what the group wants of the child; faulted marks a generation that is on its way
	// out, byHand one that a person wants anew.
	up, faulted, byHand, started bool
	fault                        FaultKind
}

// Group is the state of a supervisor with a fixed list of children.
type Group struct {
	spec      GroupSpec
	children  []Child
	budgets   budgets
	moves     []Move
	abandoned int
	rnd       func() float64
	started   bool
	ready     bool
	ending    bool
	ended     bool
	done      bool
	escalated bool
	escalate  Action
	now       time.Time
	out       []Action
}

// NewGroup prepares a group; rnd in [0,1) feeds the jitter.
func NewGroup(spec GroupSpec, children []ChildSpec, rnd func() float64) *Group {
	g := &Group{spec: spec, budgets: newBudgets(spec), rnd: rnd, children: make([]Child, 0, len(children))}
	for _, c := range children {
		g.children = append(g.children, Child{Spec: c})
	}
	return g
}

// Resume makes the generations of child i go on after gen, so that the name of a generation
// is never used twice, however often the group itself is restarted.
func (g *Group) Resume(i int, gen uint64) { g.children[i].Gen = max(g.children[i].Gen, gen) }

// Children is the group's state, owned by the group.
func (g *Group) Children() []Child { return g.children }

// Step takes one event and returns what to do, in order. The slice is valid until the
// next Step.
func (g *Group) Step(now time.Time, e Event) []Action {
	g.now, g.out, g.moves = now, g.out[:0], g.moves[:0]
	g.apply(e)
	g.advance()
	return g.out
}

func (g *Group) apply(e Event) {
	switch e.Kind {
	case GroupStart:
		g.started = true
		for i := range g.children {
			g.children[i].up = true
		}
	case GroupStop:
		g.done = false
		g.end()
	case GroupFault:
		g.overrun(e.Child)
	case ZombieReturned:
		g.abandoned = max(g.abandoned-1, 0)
	default:
		if e.Child < 0 || e.Child >= len(g.children) {
			return
		}
		g.applyChild(&g.children[e.Child], e)
	}
}

func (g *Group) applyChild(c *Child, e Event) {
	if e.Kind != BackoffElapsed && e.Kind != ChildRestart && e.Gen != c.Gen {
		return
	}
	switch e.Kind {
	case ChildReady:
		if c.State == Starting {
			g.enter(c, Running)
		}
	case ChildFault:
		g.faulted(e.Child, e.Fault)
	case ChildExited:
		g.exited(e.Child, e.Normal)
	case StopElapsed:
		g.stopElapsed(e.Child)
	case BackoffElapsed:
		if (c.State == BackingOff || c.State == Parked) && e.Gen == c.Gen {
			g.enter(c, Idle)
		}
	case ChildRestart:
		g.restartByHand(e.Child)
	}
}

// Move is one change of a child's state.
type Move struct {
	Child    int
	Gen      uint64
	From, To State
	// NextTry is when a waiting child is started again.
	NextTry time.Time
	// Repair is how long the child had been broken, once it runs again after a fault.
	Repair time.Duration
	// Abandoned tells that the generation that left would not stop.
	Abandoned bool
}

// Moves are the changes of state of the last Step, in order; the slice is valid until the
// next. States that a child only passed through are left out.
func (g *Group) Moves() []Move { return g.moves }

func (g *Group) enter(c *Child, s State) {
	m := Move{Child: g.indexOf(c), Gen: c.Gen, From: c.State, To: s}
	if s == Running && !c.broken.IsZero() {
		m.Repair, c.broken = g.now.Sub(c.broken), time.Time{}
	}
	c.State, c.Since, c.NextTry = s, g.now, time.Time{}
	if n := len(g.moves); n > 0 && g.moves[n-1].Child == m.Child && m.From == Idle {
		m.From, m.Abandoned = g.moves[n-1].From, g.moves[n-1].Abandoned
		g.moves = g.moves[:n-1]
	}
	if m.From != m.To {
		g.moves = append(g.moves, m)
	}
}

func (g *Group) indexOf(c *Child) int {
	for i := range g.children {
		if c == &g.children[i] {
			return i
		}
	}
	return -1
}

func (g *Group) emit(a Action) { g.out = append(g.out, a) }

// end takes every child down.
func (g *Group) end() {
	g.ending = true
	for i := range g.children {
		g.children[i].up = false
	}
}

// faulted notes that the live generation of a child failed and applies its policy.
func (g *Group) faulted(i int, kind FaultKind) {
	c := &g.children[i]
	live := c.State == Starting || c.State == Running
	if !live || c.faulted {
		return
	}
	cell := c.Spec.Policy[kind]
	c.faulted, c.fault = true, kind
	c.countFailure(kind, g.now)
	if g.ending {
		return
	}
	switch {
	case cell.Do == DoEscalate:
		g.fail(i, kind)
	case cell.Do == DoRestart && c.Spec.Restart != Temporary:
		g.restart(i, kind)
	}
}

// countFailure takes one step on the curve of a kind, or begins it anew after long service.
func (c *Child) countFailure(kind FaultKind, now time.Time) {
	if c.State == Running && now.Sub(c.Since) >= c.Spec.Policy[kind].Backoff.Reset {
		c.failures[kind] = 0
	}
	c.failures[kind]++
	if c.broken.IsZero() {
		c.broken = now
	}
}

// restart takes down what shares the child's fate; advance brings it up again. A taken
// address is nobody's fault: it costs no budget and touches no sibling.
func (g *Group) restart(i int, kind FaultKind) {
	if kind == BindFailure {
		g.children[i].up = false
		return
	}
	if !g.budgets.spend(g.now) {
		g.fail(i, kind)
		return
	}
	g.takeDown(i)
}

// takeDown unwants child i and what the strategy restarts together with it.
func (g *Group) takeDown(i int) {
	first, last := i, i
	switch g.spec.Strategy {
	case OneForAll:
		first, last = 0, len(g.children)-1
	case RestForOne:
		last = len(g.children) - 1
	}
	for j := first; j <= last; j++ {
		if c := &g.children[j]; c.State == Starting || c.State == Running {
			c.up = false
		}
	}
}

// fail ends the group and remembers the fault to escalate.
func (g *Group) fail(i int, kind FaultKind) { g.giveUp(Action{Kind: Escalate, Child: i, Fault: kind}) }

// overrun ends the group because more was left behind than it bears.
func (g *Group) overrun(i int) {
	g.giveUp(Action{Kind: Escalate, Child: i, Fault: Hang, Overrun: true})
}

// giveUp ends the group; the first reason is escalated.
func (g *Group) giveUp(why Action) {
	if why.Child < 0 || why.Child >= len(g.children) {
		return
	}
	if !g.escalated && !g.ending {
		why.Gen = g.children[why.Child].Gen
		g.escalated, g.escalate = true, why
	}
	g.end()
}

// exited decides what a child that is gone becomes.
func (g *Group) exited(i int, normal bool) {
	c := &g.children[i]
	switch {
	case c.State != Starting && c.State != Running && c.State != Stopping:
		return
	case g.ending:
		g.enter(c, Idle)
	case c.byHand:
		g.enter(c, Idle)
		c.up = true
	case c.faulted:
		g.afterFault(c, i)
	case normal && !c.stoppedByGroup():
		g.afterNormalEnd(c, i)
	default:
		g.enter(c, Idle)
		c.up = true
	}
	c.faulted, c.byHand = false, false
}

// stoppedByGroup tells a child that was told to stop from one that ended by itself.
func (c *Child) stoppedByGroup() bool { return c.State == Stopping }

func (g *Group) afterFault(c *Child, i int) {
	cell := c.Spec.Policy[c.fault]
	if c.Spec.Restart == Temporary || cell.Do == DoStop || cell.Do == DoEscalate {
		g.enter(c, Dead)
		c.up = false
		if c.Spec.Significant {
			g.fail(i, c.fault)
		}
		return
	}
	delay, state := cell.Backoff.Delay(c.failures[c.fault], g.rnd()), BackingOff
	if cell.Do == DoPark {
		delay, state = cell.Backoff.Cap, Parked
	}
	g.enter(c, state)
	c.up, c.NextTry = true, g.now.Add(delay)
	g.moves[len(g.moves)-1].NextTry = c.NextTry
	g.emit(Action{Kind: Wait, Child: i, Gen: c.Gen, Delay: delay})
}

func (g *Group) afterNormalEnd(c *Child, i int) {
	if c.Spec.Restart != Permanent {
		g.enter(c, Done)
		c.up = false
		if c.Spec.Significant {
			g.done = true
			g.end()
		}
		return
	}
	// A permanent child must not end: that is treated like an error.
	c.countFailure(ErrorReturn, g.now)
	c.fault = ErrorReturn
	switch c.Spec.Policy[ErrorReturn].Do {
	case DoEscalate:
		g.fail(i, ErrorReturn)
	case DoRestart:
		g.restart(i, ErrorReturn)
	}
	if g.ending {
		g.enter(c, Idle)
		return
	}
	g.afterFault(c, i)
}

func (g *Group) stopElapsed(i int) {
	c := &g.children[i]
	if c.State != Stopping {
		return
	}
	g.emit(Action{Kind: AbandonChild, Child: i, Gen: c.Gen})
	if g.abandoned++; g.abandoned > g.spec.MaxAbandoned && !g.ending {
		g.overrun(i)
	}
	g.exited(i, false)
	for j := range g.moves {
		g.moves[j].Abandoned = g.moves[j].Abandoned || g.moves[j].Child == i
	}
}

// restartByHand costs no budget and forgets the failures of the child.
func (g *Group) restartByHand(i int) {
	c := &g.children[i]
	if g.ending {
		return
	}
	switch c.State {
	case Starting, Running:
		g.takeDown(i)
	case BackingOff, Parked, Dead, Done:
		g.enter(c, Idle)
		c.up = true
	case Stopping:
		c.byHand = true
	}
	c.failures = [NumFaultKinds]int{}
}

// advance emits whatever the wanted state allows now: stops newest first and one at a
// time, then starts oldest first.
func (g *Group) advance() {
	if g.ended {
		return
	}
	g.stops()
	if g.ending {
		g.finish()
		return
	}
	if g.started && !(g.ordered() && g.anyStopping()) {
		g.starts()
	}
	g.acknowledge()
}

func (g *Group) ordered() bool { return g.spec.Strategy != OneForOne }

// stops asks the newest child that must go, one at a time. Only in one_for_one groups,
// children that go for reasons of their own do not wait for each other.
func (g *Group) stops() {
	serial := g.ordered() || g.ending
	if serial && g.anyStopping() {
		return
	}
	for i := len(g.children) - 1; i >= 0; i-- {
		c := &g.children[i]
		if (c.State != Starting && c.State != Running) || (c.up && !c.faulted) {
			continue
		}
		g.enter(c, Stopping)
		g.emit(Action{Kind: StopChild, Child: i, Gen: c.Gen, Delay: c.Spec.StopTimeout})
		if serial {
			return
		}
	}
}

func (g *Group) anyStopping() bool {
	for i := range g.children {
		if g.children[i].State == Stopping {
			return true
		}
	}
	return false
}

// starts brings up the oldest child that is wanted and idle. A child that is starting
// holds back the later ones, and so does one that waits where the later ones depend on it.
func (g *Group) starts() {
	for i := range g.children {
		c := &g.children[i]
		if c.State == Idle && c.up {
			g.start(c, i)
		}
		if c.State == Starting && (g.ordered() || !g.ready) {
			return
		}
		if c.holdsBack() && g.ordered() {
			return
		}
	}
}

// holdsBack says whether later siblings have to wait for this child's back-off. A listener
// whose address is taken holds back nobody.
func (c *Child) holdsBack() bool { return c.State == BackingOff && c.fault != BindFailure }

func (g *Group) start(c *Child, i int) {
	if c.started {
		c.Restarts++
	}
	c.started = true
	c.Gen++
	c.faulted = false
	g.enter(c, Starting)
	g.emit(Action{Kind: StartChild, Child: i, Gen: c.Gen, Delay: c.Spec.StartTimeout})
}

// acknowledge reports the group as started once every child has been given its chance.
func (g *Group) acknowledge() {
	if g.ready || !g.started {
		return
	}
	for i := range g.children {
		s := g.children[i].State
		if s == Idle || s == Starting || s == Stopping || (g.ordered() && g.children[i].holdsBack()) {
			return
		}
	}
	g.ready = true
	g.emit(Action{Kind: GroupReady})
}

// finish reports the end of the group once nothing of it runs.
func (g *Group) finish() {
	for i := range g.children {
		c := &g.children[i]
		switch c.State {
		case Starting, Running, Stopping:
			return
		case BackingOff, Parked:
			g.enter(c, Idle)
		}
	}
	g.ended = true
	g.emit(Action{Kind: GroupStopped})
	switch {
	case g.escalated:
		g.emit(g.escalate)
	case g.done:
		g.emit(Action{Kind: GroupDone})
	}
}
