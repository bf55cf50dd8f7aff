package supervision

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Pace of the watchdog.
const (
	// slowestTick is how often every child is checked for a hang when all windows are long.
	slowestTick = time.Second
	// fastestTick bounds the checks when a window is very short.
	fastestTick = 5 * time.Millisecond
	// ticksPerWindow is how often the shortest window is looked at.
	ticksPerWindow = 10
	// stackLimit bounds the dump of all goroutines in which a hung one is looked for.
	stackLimit = 4 << 20
)

// errNotReady is returned when a child does not acknowledge its start within StartTimeout.
var errNotReady = errors.New("the start was not acknowledged in time")

// watchdog is the timer behind scan.
type watchdog struct {
	// tick is the pace, in nanoseconds; now is when it looked last, as Unix nanoseconds.
	tick, now atomic.Int64

	mu sync.Mutex
	// round counts the timers; only the last one counts. due is when it should fire.
	round  uint64
	due    int64
	disarm func() bool
	// stalled is how long nothing ran, so that nobody could show a sign of life: the machine
	// or the process was stopped, or much too busy.
	stalled atomic.Int64

	// dumpMu guards the last dump of all goroutines and when it was taken.
	dumpMu sync.Mutex
	dump   [][]byte
	dumpAt int64
}

// window makes the watchdog fast enough for a window it has to judge.
func (s *System) window(d time.Duration) {
	tick := int64(min(max(d/ticksPerWindow, fastestTick), slowestTick))
	if s.dog.tick.Load() <= tick {
		return
	}
	s.dog.mu.Lock()
	defer s.dog.mu.Unlock()
	if s.dog.tick.Load() <= tick {
		return
	}
	s.dog.tick.Store(tick)
	if s.dog.disarm != nil {
		s.dog.disarm()
		s.arm()
	}
}

// watch looks for hangs until the system ends.
func (s *System) watch() {
	s.dog.mu.Lock()
	defer s.dog.mu.Unlock()
	s.arm()
}

// arm sets the timer of the next look. The lock is held.
func (s *System) arm() {
	s.dog.round++
	round, after := s.dog.round, s.clock.AfterFunc
	if s.exec != nil {
		after = s.exec.Watch
	}
	tick := s.dog.tick.Load()
	s.dog.due = s.watched() + tick
	s.dog.disarm = after(time.Duration(tick), func() { s.look(round) })
}

// watched is the time by which children are judged, in nanoseconds: it stands still while
// nothing ran. Signs of life are noted in it.
func (s *System) watched() int64 { return s.Steady().UnixNano() - s.dog.stalled.Load() }

// shown turns a time by which children are judged into one for people.
func (s *System) shown(watched int64) time.Time {
	return s.epoch.Add(time.Duration(watched + s.dog.stalled.Load() - s.epoch.UnixNano()))
}

// excuse notes that the watchdog itself was held up: whatever held it up held up those it
// watches, too.
func (s *System) excuse() {
	s.dog.mu.Lock()
	defer s.dog.mu.Unlock()
	if late := s.watched() - s.dog.due; late > s.dog.tick.Load() {
		s.dog.stalled.Add(late)
	}
}

func (s *System) look(round uint64) {
	s.excuse()
	begin := s.clock.Now()
	s.scan(s.watched())
	s.gauges.scan.Store(int64(s.clock.Now().Sub(begin)))
	s.dog.mu.Lock()
	defer s.dog.mu.Unlock()
	if round == s.dog.round && !over(s.ended) {
		s.arm()
	}
}

// rest ends the looking.
func (d *watchdog) rest() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.round++
	if d.disarm != nil {
		d.disarm()
		d.disarm = nil
	}
}

// scan checks every child and reports the hung ones.
func (s *System) scan(now int64) {
	s.dog.now.Store(now)
	s.dog.forgetDump(now)
	var hung []*cell
	s.mu.Lock()
	for _, c := range s.cells {
		if !c.idle() && c.suspect(now) {
			hung = append(hung, c)
		}
	}
	s.mu.Unlock()
	for _, c := range hung {
		c.reportHang(now)
	}
}

// idle is a cheap first look. Most children are idle, and for those it is all there is.
func (c *cell) idle() bool { return c.seq.Load()%2 == 0 && !c.watched.Load() }

// suspect tells whether something of a child that is at work has been silent for too long.
func (c *cell) suspect(now int64) bool {
	if c.seq.Load()%2 == 1 && c.busyFor(now) >= c.spec.HangAfter {
		return true
	}
	if !c.watched.Load() {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.overdue(now) {
		return true
	}
	for _, j := range c.jobs {
		if j.hung(now) {
			return true
		}
	}
	return false
}

// busyFor notes a message that is seen for the first time, and tells how long ago that was.
func (c *cell) busyFor(now int64) time.Duration {
	if seq := c.seq.Load(); c.seenSeq.Load() != seq {
		c.seenAt.Store(now)
		c.seenSeq.Store(seq)
	}
	return time.Duration(now - c.seenAt.Load())
}

// watchIfNeeded keeps watched true while a start or a job is in progress. The lock is held.
func (c *cell) watchIfNeeded() { c.watched.Store(!c.ready || len(c.jobs) > 0) }

// overdue tells whether the start should have been acknowledged by now. The lock is held.
func (c *cell) overdue(now int64) bool {
	return !c.ready && !c.lateStart && c.phase == open && now-c.born >= int64(c.spec.StartTimeout)
}

func (j *jobRecord) hung(now int64) bool {
	silent := j.within > 0 && now-j.lastBeat.Load() >= int64(j.within)
	return !j.reported && (silent || j.overdue > 0 && now >= j.overdue)
}

// reportHang raises the fault, once for each message, job or start: the stack is taken while
// it still shows where the time goes, then the context ends and the owner decides.
func (c *cell) reportHang(now int64) {
	doing, since, ok := c.hungIn(now)
	if !ok {
		return
	}
	err := fmt.Errorf("no progress for %s", time.Duration(now-since).Round(time.Millisecond))
	if doing == startName {
		err = errNotReady
	}
	f := c.fault(Hang, err, c.stack(), doing)
	f.Since = c.sys.shown(since)
	c.sys.record(f, c.slot)
	if c.end(false) {
		c.owner.childFault(c, f)
	}
}

// startName stands for the message of a start that was not acknowledged.
const startName = "start"

// hungIn says what hangs. A child that is on its way out is not judged any more: its owner has
// the StopTimeout for that.
func (c *cell) hungIn(now int64) (doing string, since int64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != open {
		return "", 0, false
	}
	if busy := c.busySince(); busy != 0 && now-busy >= int64(c.spec.HangAfter) && !c.reported {
		c.reported = true
		return describe(c.current), busy, true
	}
	for _, j := range c.jobs {
		if j.hung(now) {
			j.reported = true
			return "job " + j.name, j.lastBeat.Load(), true
		}
	}
	if c.overdue(now) {
		c.lateStart = true
		return startName, c.born, true
	}
	return "", 0, false
}

// stack finds the goroutines that work for this cell: their frames show its address as the
// receiver of the guard.
func (c *cell) stack() []byte { return c.stackIn(c.sys.allStacks()) }

func (c *cell) stackIn(goroutines [][]byte) []byte {
	self := fmt.Appendf(nil, "(%p", c)
	var found [][]byte
	for _, g := range goroutines {
		if bytes.Contains(g, self) {
			found = append(found, g)
		}
	}
	return bytes.Clone(bytes.Join(found, []byte("\n\n")))
}

// allStacks returns the stack of every goroutine, as far as they fit the limit. A dump stops
// everything for a moment, so one serves all children that hang together. Under an executor
// there is nothing to be seen: goroutines do not stand for children there.
func (s *System) allStacks() [][]byte {
	if s.exec != nil {
		return nil
	}
	d := &s.dog
	d.dumpMu.Lock()
	defer d.dumpMu.Unlock()
	if now := s.watched(); d.dump == nil || d.stale(now) {
		d.dump, d.dumpAt = dumpStacks(), now
	}
	return d.dump
}

// stale tells whether the last dump may be older than a hang that is judged now. The lock is
// held.
func (d *watchdog) stale(now int64) bool { return now-d.dumpAt >= d.tick.Load()*ticksPerWindow/2 }

// forgetDump gives the memory of an old dump back.
func (d *watchdog) forgetDump(now int64) {
	d.dumpMu.Lock()
	defer d.dumpMu.Unlock()
	if d.stale(now) {
		d.dump = nil
	}
}

// dumpStacks leaves out its own goroutine, which comes first.
func dumpStacks() [][]byte {
	buf := make([]byte, stackLimit)
	buf = bytes.Clone(buf[:runtime.Stack(buf, true)])
	_, others, _ := bytes.Cut(buf, []byte("\n\n"))
	return bytes.Split(others, []byte("\n\n"))
}
