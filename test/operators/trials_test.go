package operators

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/cluster/lease"
)

// Bounds of what is tried.
const (
	announcedWithin = 2 * time.Second
	silentWithin    = 16 * time.Second
	// lookAround is how long processes that go on are given for what they were about to do.
	lookAround = 2 * time.Second
)

// asked is how many trials the environment asks for.
func asked(env string, otherwise int) int {
	n, err := strconv.Atoi(os.Getenv(env))
	if err != nil || n <= 0 {
		return otherwise
	}
	return n
}

// TestF095_StoppedHoldersHaveNoStaleEffect stops processes in the midst of their work until others have it, and lets them go on.
func TestF095_StoppedHoldersHaveNoStaleEffect(t *testing.T) {
	t.Parallel()
	trials := asked("OPERATORS_STOPS", 6)
	atOnce := min(trials, 50)
	others := 2 + atOnce/6
	f := newFleet(t, 2*(atOnce+others), false)
	var stopped []*proc
	host := f.start("host") // it is never stopped: with it the store would stand still
	f.await("the host has the store open", patience, func() bool { return len(f.of(host)) > 0 })
	for i := range others - 1 {
		f.start(fmt.Sprint("other", i))
	}
	for i := range atOnce {
		stopped = append(stopped, f.start(fmt.Sprint("stopped", i)))
	}
	done := 0
	// Few processes may by chance all be stopped while they rest.
	for ; done < trials || f.refusals() == 0 && done < 3*trials; done += atOnce {
		f.shared(1, stopped...)
		f.stopAndGoOn(stopped)
	}
	effects := f.judge()
	t.Logf("%d trials: %d effects were accepted, %d stale ones refused, of %d the outcome is not known", done, effects, f.refused, f.unknown)
	if f.refused == 0 {
		t.Error("no stale effect was tried, so that this proves nothing")
	}
}

// stopAndGoOn is one trial for each of the processes.
func (f *fleet) stopAndGoOn(procs []*proc) {
	f.t.Helper()
	had := map[string]uint64{}
	for _, p := range procs {
		p.signal(syscall.SIGSTOP)
	}
	time.Sleep(100 * time.Millisecond) // for what they said before
	began := time.Now()
	for _, p := range procs {
		for m, epoch := range f.had(p) {
			had[m] = epoch
		}
	}
	last := f.taken(had, lease.TTL+15*time.Second)
	f.t.Logf("%d manifests of %d stopped processes were taken over within %s", len(had), len(procs), last.Sub(began).Round(time.Millisecond))
	for _, p := range procs {
		p.signal(syscall.SIGCONT)
	}
	time.Sleep(lookAround)
}

// TestF095_AStoppedHostStopsTheStore stops the process that has the store open for longer than a session lives. Nobody can do anything
// meanwhile; then all go on with what they had, because it was not their fault that they did not renew.
func TestF095_AStoppedHostStopsTheStore(t *testing.T) {
	t.Parallel()
	const manifests = 8
	f := newFleet(t, manifests, false)
	host := f.start("host")
	f.await("the host tends all", patience, func() bool { return len(f.of(host)) == manifests })
	guest := f.start("guest")
	f.shared(manifests/2, host, guest)
	had := f.had(guest)
	host.signal(syscall.SIGSTOP)
	time.Sleep(lease.TTL + 2*time.Second)
	host.signal(syscall.SIGCONT)
	time.Sleep(lookAround)
	if now := f.had(guest); !maps.Equal(now, had) {
		t.Errorf("the guest tends %v, it tended %v", now, had)
	}
	before := f.effects()
	if len(before) != manifests {
		t.Errorf("only %d of %d manifests had effects", len(before), manifests)
	}
	for began := time.Now(); f.idle(before); time.Sleep(betweenPasses) {
		if time.Since(began) > patience {
			t.Fatalf("not all manifests have effects after the host went on:\n%s", f.state())
		}
	}
	f.judge()
}

// TestF096_KilledHoldersAreReplaced kills one of two processes, in turn the one that has the store open and the other one, and measures
// how long it takes until the last of its manifests has an effect of the other.
func TestF096_KilledHoldersAreReplaced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		silent     bool
		within     time.Duration
		otherwise  int
		fleetsMost int
	}{
		{"announced", false, announcedWithin, 6, 3},
		{"not announced", true, silentWithin, 2, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			trials := asked("OPERATORS_KILLS", c.otherwise)
			fleets := min(c.fleetsMost, trials)
			var mu sync.Mutex
			var took []time.Duration
			t.Run("fleets", func(t *testing.T) {
				for i := range fleets {
					t.Run(fmt.Sprint(i), func(t *testing.T) {
						t.Parallel()
						of := takeovers(t, (trials-i+fleets-1)/fleets, c.silent, i)
						mu.Lock()
						defer mu.Unlock()
						took = append(took, of...)
					})
				}
			})
			report(t, took, c.within)
		})
	}
}

// takeovers kills processes of one store.
func takeovers(t *testing.T, trials int, silent bool, first int) (took []time.Duration) {
	const manifests = 8
	f := newFleet(t, manifests, silent)
	host := f.start("p0")
	f.await("the first tends all", patience, func() bool { return len(f.of(host)) == manifests })
	for i := range trials {
		guest := f.start(fmt.Sprint("p", i+1))
		f.shared(manifests/2, host, guest)
		killed, left := guest, host
		if (first+i)%2 == 0 {
			killed, left = host, guest
		}
		had := f.had(killed)
		began := time.Now()
		killed.kill()
		took = append(took, f.taken(had, lease.TTL+15*time.Second).Sub(began))
		host = left
	}
	f.judge()
	return took
}

// report prints the percentiles and holds the 99th to a bound.
func report(t *testing.T, took []time.Duration, within time.Duration) {
	t.Helper()
	if len(took) == 0 {
		t.Fatal("there was no trial")
	}
	slices.Sort(took)
	percentile := func(percent int) time.Duration { return took[(len(took)*percent+99)/100-1].Round(time.Millisecond) }
	t.Logf("%d takeovers: p50 %s, p90 %s, p99 %s, longest %s", len(took), percentile(50), percentile(90), percentile(99), percentile(100))
	if percentile(99) > within {
		t.Errorf("the 99th percentile is %s, the most is %s", percentile(99), within)
	}
}

// TestF097_AnIdleProcessPullsItsShare: a process that comes gets its share of what another one works on.
func TestF097_AnIdleProcessPullsItsShare(t *testing.T) {
	t.Parallel()
	const manifests = 24
	f := newFleet(t, manifests, false)
	first := f.start("first")
	f.await("the first tends all", patience, func() bool { return len(f.of(first)) == manifests })
	began := time.Now()
	second := f.start("second")
	f.shared(manifests/2, first, second)
	t.Logf("half of %d manifests after %s", manifests, time.Since(began).Round(time.Millisecond))
	f.judge()
}

// TestF100_WhoLeavesIsReplacedAtOnce: a process that is told to stop gives back what it has, and ends in order; the store goes on when it was
// the one that had it open.
func TestF100_WhoLeavesIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	const manifests = 12
	f := newFleet(t, manifests, true) // so that it is not the end of the process that tells
	first := f.start("first")
	f.await("the first tends all", patience, func() bool { return len(f.of(first)) == manifests })
	second := f.start("second")
	f.shared(manifests/2, first, second)
	had := f.had(first)
	began := time.Now()
	first.signal(syscall.SIGTERM)
	took := f.taken(had, announcedWithin+time.Second).Sub(began)
	t.Logf("taken over within %s", took.Round(time.Millisecond))
	if <-first.over; first.err != nil {
		t.Errorf("it did not end in order: %v", first.err)
	}
	f.judge()
}
