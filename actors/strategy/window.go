package strategy

import (
	"slices"
	"time"
)

// RefreshInputs decide whether a refresh window is open.
type RefreshInputs struct {
	// ReadTimestamp is the instant as of which the objects were read.
	ReadTimestamp Time
	// CompactionEstimate is how long after a refresh the replica is still needed.
	CompactionEstimate time.Duration
	Objects            []RefreshObject
}

// RefreshObject is something that is computed anew on a schedule.
type RefreshObject struct {
	Name string
	// Frontier is up to when the object is complete, which is its next refresh; absent when it is complete for ever.
	Frontier Optional[Time]
	Schedule RefreshSchedule
}

// RefreshSchedule says when an object is refreshed.
type RefreshSchedule struct {
	Every []RefreshEvery
	At    []Time
}

// RefreshEvery is a refresh at AlignedTo and at every multiple of Interval before and after it.
type RefreshEvery struct {
	Interval  time.Duration
	AlignedTo Time
}

// window lists the objects that need a replica. Times beyond the ends of time count as a need: a replica too many does less harm than a
// refresh that does not happen.
func (in *RefreshInputs) window(schedule Schedule) Window {
	var w Window
	needed, ok := in.ReadTimestamp.Add(schedule.HydrationEstimate)
	for _, object := range in.Objects {
		if frontier, open := object.Frontier.Get(); open && (!ok || frontier < needed) {
			w.Refresh = append(w.Refresh, object.Name)
		}
		if in.compacts(object) {
			w.Compaction = append(w.Compaction, object.Name)
		}
	}
	slices.Sort(w.Refresh)
	slices.Sort(w.Compaction)
	return w
}

// compacts tells whether the last refresh of the object is not long ago. One that is not known was not.
func (in *RefreshInputs) compacts(object RefreshObject) bool {
	previous, known := object.previous()
	if !known {
		return false
	}
	until, ok := previous.Add(in.CompactionEstimate)
	return !ok || until > in.ReadTimestamp
}

// previous gives the last refresh that was done.
func (o RefreshObject) previous() (Time, bool) {
	frontier, open := o.Frontier.Get()
	if !open {
		return o.Schedule.last()
	}
	return o.Schedule.before(frontier)
}

// last gives the refresh after which there is none.
func (s RefreshSchedule) last() (Time, bool) {
	if len(s.Every) > 0 || len(s.At) == 0 {
		return 0, false
	}
	return slices.Max(s.At), true
}

// before gives the last refresh before t; one that cannot be computed is the end of time.
func (s RefreshSchedule) before(t Time) (Time, bool) {
	latest, found := minTime, false
	for _, at := range s.At {
		if at < t {
			latest, found = max(latest, at), true
		}
	}
	for _, every := range s.Every {
		if every.Interval.Microseconds() > 0 {
			latest, found = max(latest, every.before(t)), true
		}
	}
	return latest, found
}

func (e RefreshEvery) before(t Time) Time {
	interval := e.Interval.Microseconds()
	since, ok := t.sub(e.AlignedTo)
	if !ok || since == int64(minTime) || t == minTime {
		return maxTime
	}
	// How far the last multiple is before the microsecond before t.
	past := ((since-1)%interval + interval) % interval
	if t-1 < minTime+Time(past) {
		return maxTime
	}
	return t - 1 - Time(past)
}
