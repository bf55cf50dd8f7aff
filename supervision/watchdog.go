package supervision

import (
	"bytes"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"time"
)

// stackLimit bounds the dump of all goroutines in which a hung one is looked for.
const stackLimit = 4 << 20

// watch looks for hangs until the system ends.
func (s *System) watch() {
	for s.clock.Sleep(s.ctx, watchdogTick) == nil {
		select {
		case <-s.ended:
			return
		default:
		}
		s.scan(s.clock.Now().UnixNano())
	}
}

// scan checks every child and reports the hung ones.
func (s *System) scan(now int64) {
	var hung []*cell
	s.mu.Lock()
	for _, c := range s.cells {
		if c.suspect(now) {
			hung = append(hung, c)
		}
	}
	s.mu.Unlock()
	for _, c := range hung {
		c.reportHang(now)
	}
}

// suspect is a cheap first look.
func (c *cell) suspect(now int64) bool {
	busy := c.busySince.Load()
	if busy != 0 && now-busy >= int64(c.spec.HangAfter) {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range c.jobs {
		if j.hung(now) {
			return true
		}
	}
	return false
}

func (j *jobRecord) hung(now int64) bool {
	silent := j.within > 0 && now-j.lastBeat.Load() >= int64(j.within)
	return !j.reported && (silent || j.overdue > 0 && now >= j.overdue)
}

// reportHang raises the fault, once for each message or job.
func (c *cell) reportHang(now int64) {
	doing, since, ok := c.hungIn(now)
	if !ok {
		return
	}
	busy := time.Duration(now - since)
	f := c.fault(Hang, fmt.Errorf("no progress for %s", busy.Round(time.Millisecond)), c.hungStack(), doing)
	c.sys.record(f, c)
	c.owner.childFault(c, f)
}

func (c *cell) hungIn(now int64) (doing string, since int64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == closed {
		return "", 0, false
	}
	if busy := c.busySince.Load(); busy != 0 && now-busy >= int64(c.spec.HangAfter) && !c.reported {
		c.reported = true
		return describe(c.current), busy, true
	}
	for _, j := range c.jobs {
		if j.hung(now) {
			j.reported = true
			return "job " + j.name, j.started.UnixNano(), true
		}
	}
	return "", 0, false
}

// hungStack finds the goroutines that run this child's handler by the handler's type.
func (c *cell) hungStack() []byte {
	buf := make([]byte, stackLimit)
	buf = buf[:runtime.Stack(buf, true)]
	name := strings.TrimPrefix(reflect.TypeOf(c.handler).String(), "*")
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		name = name[i+1:]
	}
	var out [][]byte
	for _, g := range bytes.Split(buf, []byte("\n\n")) {
		if bytes.Contains(g, []byte(name)) && bytes.Contains(g, []byte("supervision.(*cell)")) {
			out = append(out, g)
		}
	}
	return bytes.Join(out, []byte("\n\n"))
}
