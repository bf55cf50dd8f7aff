package strategy

import (
	"math"
	"slices"
	"testing"
	"time"
)

const day = 24 * time.Hour

// daily is an object that is refreshed at each midnight and is complete up to frontier after the start.
func daily(name string, frontier time.Duration) RefreshObject {
	return RefreshObject{
		Name: name, Frontier: Some(start.After(frontier)), Schedule: RefreshSchedule{Every: []RefreshEvery{{Interval: day, AlignedTo: start}}},
	}
}

// reads sets what is refreshed in db, as of so long after the start.
func (b *table) reads(at time.Duration, compaction time.Duration, objects ...RefreshObject) {
	b.now = start.After(at)
	b.db.refresh = &RefreshInputs{ReadTimestamp: b.now, CompactionEstimate: compaction, Objects: objects}
}

func TestF123_OneReplicaInTheWindowOnly(t *testing.T) {
	b := begin(t, Spec{Config: size(3, "S"), Schedule: Schedule{OnRefresh: true, HydrationEstimate: time.Hour}})
	b.reads(22*time.Hour, 10*time.Minute, daily("sums", day), daily("counts", day))
	b.tick()
	b.replicas("none")
	b.realized(size(0, "S"))
	b.quiet()
	b.reads(23*time.Hour, 10*time.Minute, daily("sums", day), daily("counts", day))
	b.quiet()
	b.reads(23*time.Hour+time.Microsecond, 10*time.Minute, daily("sums", day), daily("counts", day))
	b.tick()
	b.replicas("r1:S")
	b.told("db ReplicaCreated r1 (OnRefresh: refresh of counts, sums)")
	b.quiet()
	b.reads(day+9*time.Minute, 10*time.Minute, daily("sums", 2*day), daily("counts", 2*day))
	b.quiet()
	b.reads(day+10*time.Minute, 10*time.Minute, daily("sums", 2*day), daily("counts", 2*day))
	b.tick()
	b.replicas("none")
	b.told("db ReplicaDropped r1 (retired)")
	b.quiet()
}

func TestF123_NothingToRefresh(t *testing.T) {
	b := begin(t, Spec{Config: size(0, "S"), Schedule: Schedule{OnRefresh: true, HydrationEstimate: time.Hour}})
	b.quiet()
	b.reads(0, time.Hour)
	b.quiet()
	b.replicas("none")
}

func TestF123_TheFactorIsWrittenByAReconfigurationInProgress(t *testing.T) {
	b := steady(t, Spec{Config: size(2, "S")})
	if _, err := b.change("db", func(s *Spec) { s.Config, s.Schedule.OnRefresh = size(1, "M"), true }); err != nil {
		t.Fatal(err)
	}
	b.tick()
	b.status(InProgress)
	b.realized(size(2, "S"))
	b.replicas("r3:M") // Of what is realized a schedule keeps nothing while there is nothing to refresh.
	b.hydrate("db")
	b.tick()
	b.realized(size(1, "M"))
	b.tick()
	b.realized(size(0, "M"))
	b.replicas("none")
	b.quiet()
	if kind := b.to(size(5, "M"), Wait{}); kind != Unchanged {
		t.Errorf("another number is folded as %s", kind)
	}
	b.quiet()
}

func TestF123_AConcurrentChangeOfTheSchedule(t *testing.T) {
	b := begin(t, Spec{Config: size(0, "S"), Schedule: Schedule{OnRefresh: true, HydrationEstimate: time.Hour}})
	b.reads(0, time.Hour, daily("sums", 0))
	b.between = func(call string) {
		if call != "apply" {
			return
		}
		b.between = nil
		if _, err := b.change("db", func(s *Spec) { s.Schedule.HydrationEstimate = time.Minute }); err != nil {
			t.Fatal(err)
		}
	}
	if report := b.tick(); report.Rejected != 1 {
		t.Errorf("report %+v", report)
	}
	b.replicas("none")
	b.tick()
	b.replicas("r1:S")
}

func TestWindows(t *testing.T) {
	at := func(times ...Time) RefreshSchedule { return RefreshSchedule{At: times} }
	every := func(interval time.Duration, aligned Time) RefreshSchedule {
		return RefreshSchedule{Every: []RefreshEvery{{interval, aligned}}}
	}
	const us = time.Microsecond
	for name, c := range map[string]struct {
		read                 Time
		estimate, compaction time.Duration
		frontier             Optional[Time]
		schedule             RefreshSchedule
		refresh, compacts    bool
	}{
		"due long since":             {100, 0, 0, Some[Time](50), at(50), true, false},
		"due now":                    {100, 0, 0, Some[Time](100), at(100), false, false},
		"due soon":                   {100, 10 * us, 0, Some[Time](109), at(109), true, false},
		"due not yet":                {100, 10 * us, 0, Some[Time](110), at(110), false, false},
		"complete for ever":          {100, 10 * us, 0, Optional[Time]{}, at(), false, false},
		"done a moment ago":          {100, 0, 10 * us, Some[Time](200), at(91, 200), false, true},
		"done a while ago":           {100, 0, 10 * us, Some[Time](200), at(90, 200), false, false},
		"not done yet":               {100, 0, 10 * us, Some[Time](200), at(200), false, false},
		"never":                      {100, 0, 10 * us, Some[Time](200), at(), false, false},
		"last of all":                {100, 0, 10 * us, Optional[Time]{}, at(91, 20), false, true},
		"last of all, long ago":      {100, 0, 10 * us, Optional[Time]{}, at(90, 20), false, false},
		"for ever without an end":    {100, 0, 10 * us, Optional[Time]{}, every(10*us, 0), false, false},
		"interval":                   {110, 0, 10 * us, Some[Time](150), every(50*us, 0), false, false},
		"interval, a moment ago":     {105, 0, 10 * us, Some[Time](150), every(50*us, 0), false, true},
		"interval aligned later":     {105, 0, 10 * us, Some[Time](150), every(50*us, 1000), false, true},
		"interval, not yet aligned":  {105, 0, 10 * us, Some[Time](-1000), every(50*us, 1000), true, false},
		"no interval":                {100, 0, 10 * us, Some[Time](150), every(0, 95), false, false},
		"negative interval":          {100, 0, 10 * us, Some[Time](150), every(-us, 95), false, false},
		"the later of two":           {100, 0, 10 * us, Some[Time](150), RefreshSchedule{At: []Time{95}, Every: []RefreshEvery{{100 * us, 0}}}, false, true},
		"estimate overflows":         {maxTime - 1, 10 * us, 0, Some(maxTime), at(), true, false},
		"compaction overflows":       {100, 0, 10 * us, Optional[Time]{}, at(maxTime - 1), false, true},
		"interval overflows":         {100, 0, 10 * us, Some(maxTime), every(us, minTime), false, true},
		"interval underflows":        {100, 0, 10 * us, Some(minTime + 1), every(math.MaxInt64, 0), true, true},
		"beginning of time":          {100, 0, 10 * us, Some(minTime), every(us, 0), true, true},
		"negative sum does not wrap": {minTime + 5, 0, 0, Some[Time](0), every(us, 0), false, true},
	} {
		in := &RefreshInputs{ReadTimestamp: c.read, CompactionEstimate: c.compaction, Objects: []RefreshObject{{"x", c.frontier, c.schedule}}}
		w := in.window(Schedule{OnRefresh: true, HydrationEstimate: c.estimate})
		if refresh, compacts := slices.Contains(w.Refresh, "x"), slices.Contains(w.Compaction, "x"); refresh != c.refresh || compacts != c.compacts {
			t.Errorf("%s: refresh %v, want %v; compaction %v, want %v", name, refresh, c.refresh, compacts, c.compacts)
		}
	}
}

// FuzzBefore compares with a search among multiples.
func FuzzBefore(f *testing.F) {
	f.Add(int64(100), int64(7), int64(-3))
	f.Fuzz(func(t *testing.T, at, interval, aligned int64) {
		at, aligned = at%10000, aligned%10000
		if interval = interval % 1000; interval < 1 {
			interval = 1
		}
		got := RefreshEvery{Interval: time.Duration(interval) * time.Microsecond, AlignedTo: Time(aligned)}.before(Time(at))
		if int64(got) >= at || at-int64(got) > interval || (int64(got)-aligned)%interval != 0 {
			t.Errorf("before %d with %d from %d is %d", at, interval, aligned, got)
		}
	})
}
