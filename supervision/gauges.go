package supervision

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// gauges is what the system counts for those who watch over it from outside.
type gauges struct {
	scan atomic.Int64
	cpu  atomic.Pointer[CPUShares]

	mu sync.Mutex
	// dead counts dead letters by reason; handled, under System.mu, messages of generations
	// that are gone.
	dead    map[string]uint64
	handled map[family]uint64
}

// CPUShares is one measurement.
type CPUShares struct {
	// At is when it ended.
	At time.Time
	// ByPath is the share of one core of each actor that used any.
	ByPath map[string]float64
}

// LastCPU is the last measurement that MeasureCPU made, nil before; it is not to be changed.
func (s *System) LastCPU() *CPUShares { return s.gauges.cpu.Load() }

// ScanTime is how long the watchdog took to look at all children when it did so last.
func (s *System) ScanTime() time.Duration { return time.Duration(s.gauges.scan.Load()) }

// Zombies is how many generations that were left behind still run.
func (s *System) Zombies() int64 { return s.zombies.Load() }

// lost counts a dead letter.
func (g *gauges) lost(why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dead == nil {
		g.dead = map[string]uint64{}
	}
	g.dead[why]++
}

// DeadLettersByReason splits DeadLetters.
func (s *System) DeadLettersByReason() map[string]uint64 {
	s.gauges.mu.Lock()
	defer s.gauges.mu.Unlock()
	return maps.Clone(s.gauges.dead)
}

// family is what generations are counted under: the place of a child, or the pool of a member.
type family struct {
	path string
	pool bool
}

func (c *cell) family() family {
	if p := c.slot.pool; p != nil {
		return family{p.path, true}
	}
	return family{c.slot.path, false}
}

// taken is how many messages the generation has taken.
func (c *cell) taken() uint64 { return c.seq.Load() / 2 }

// Handled counts the messages of all generations so far by path; the members of a pool are
// counted together, as POOL/*.
func (s *System) Handled() map[string]uint64 {
	s.mu.Lock()
	all := maps.Clone(s.gauges.handled)
	for _, c := range s.cells {
		all[c.family()] += c.taken()
	}
	s.mu.Unlock()
	out := make(map[string]uint64, len(all))
	for f, n := range all {
		if f.pool {
			f.path += "/*"
		}
		out[f.path] = n
	}
	return out
}
