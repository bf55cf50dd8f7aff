package replicagroup

import (
	"time"

	"github.com/nodeactor/nodeactor/actors/strategy"
)

// RefreshedPrefix begins the annotations of a group by which whoever refreshes an object says, as RFC 3339, up to when it is complete.
const RefreshedPrefix = "refreshed.apps.nodeactor.io/"

// refreshInputs is what decides the refresh window of a group with a schedule.
func refreshInputs(g *Group, now strategy.Time) *strategy.RefreshInputs {
	in := &strategy.RefreshInputs{ReadTimestamp: now, CompactionEstimate: g.Spec.Schedule.OnRefresh.CompactionEstimate.Duration}
	for _, object := range g.Spec.Schedule.OnRefresh.Objects {
		in.Objects = append(in.Objects, strategy.RefreshObject{
			Name: object.Name, Frontier: strategy.Some(frontier(g, object, now)),
			Schedule: strategy.RefreshSchedule{Every: []strategy.RefreshEvery{{Interval: object.Every.Duration, AlignedTo: object.aligned()}}},
		})
	}
	return in
}

func (o Refreshed) aligned() strategy.Time {
	if o.AlignedTo == nil {
		return 0
	}
	return strategy.TimeOf(o.AlignedTo.Time)
}

// frontier is up to when an object is complete. What is reported and cannot be read, or was not reported yet, is not complete at all.
// What is not reported is refreshed on time: it is complete up to its next refresh.
func frontier(g *Group, o Refreshed, now strategy.Time) strategy.Time {
	if !o.Reported {
		return o.next(now)
	}
	at, err := time.Parse(time.RFC3339, g.Annotations[RefreshedPrefix+o.Name])
	if err != nil {
		return strategy.TimeOf(time.Time{})
	}
	return strategy.TimeOf(at)
}

// next is the first refresh after now.
func (o Refreshed) next(now strategy.Time) strategy.Time {
	every := strategy.Time(o.Every.Microseconds())
	if every <= 0 {
		return now
	}
	past := ((now-o.aligned())%every + every) % every
	return now - past + every
}

// edge is how long until a refresh window may open or close.
func edge(g *Group, now strategy.Time) time.Duration {
	schedule := g.Spec.Schedule.OnRefresh
	soonest := time.Duration(0)
	consider := func(at strategy.Time, ok bool) {
		if in := at.UTC().Sub(now.UTC()); ok && in >= 0 && (soonest == 0 || in < soonest) {
			soonest = in + time.Microsecond
		}
	}
	for _, o := range schedule.Objects {
		every, next := o.Every.Duration, o.next(now)
		consider(next, true)
		for _, offset := range []time.Duration{-schedule.HydrationEstimate.Duration, schedule.CompactionEstimate.Duration} {
			at := next.After(offset % every)
			for ; at > now; at = at.After(-every) {
			}
			consider(at.After(every), every > 0)
		}
	}
	return soonest
}
