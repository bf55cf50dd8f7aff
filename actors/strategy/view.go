package strategy

import "fmt"

// View is what people are shown of a set: what it has and what it is on its way to.
type View struct {
	Realized Config
	// Target, Deadline, OnTimeout and Status are those of the last reconfiguration; the target is absent when there was none.
	Target    Optional[Config]
	Deadline  Time
	OnTimeout OnTimeout
	Status    Status
	// BurstSize is the size of the burst's replica, empty without one.
	BurstSize string
}

// View gives what people are shown.
func (d Durable) View() View {
	v := View{Realized: d.Config}
	if r, ok := d.Reconfiguration.Get(); ok {
		v.Target, v.Deadline, v.OnTimeout, v.Status = Some(r.Target), r.Deadline, r.OnTimeout, r.Status
	}
	if burst, ok := d.Burst.Get(); ok && !burst.Shed {
		v.BurstSize = burst.Size
	}
	return v
}

// String is the view in one line.
func (v View) String() string {
	text := "realized " + v.Realized.String()
	if target, ok := v.Target.Get(); ok {
		text += fmt.Sprintf(", reconfiguration to %s %s, deadline %s, then %s", target, v.Status, v.Deadline, v.OnTimeout)
	}
	if v.BurstSize != "" {
		text += ", burst " + v.BurstSize
	}
	return text
}

// Settled tells a caller that wants to wait for its change how it ended, and false when it has not: look again after the next change of
// the state. The generation is that of the spec it wrote; a change that was replaced by a newer one ends as that does. No timer is
// needed, because every change ends at its deadline.
func (d Durable) Settled(generation int64) (Status, bool) {
	r, ok := d.Reconfiguration.Get()
	switch {
	case d.Generation < generation || ok && r.Status == InProgress:
		return 0, false
	case ok && r.Generation >= generation:
		return r.Status, true
	}
	return Finalized, true
}
