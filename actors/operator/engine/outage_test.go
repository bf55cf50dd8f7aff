package engine

import (
	"fmt"
	"testing"
	"time"
)

func TestOutageLetsOneLookForAll(t *testing.T) {
	o, now := &outage{}, ms(0)
	for i := range outageAfter {
		if wait := o.admit(now, 0.5); wait != 0 {
			t.Errorf("pass %d waits %v", i, wait)
		}
		o.note(now, Key{Name: "alone"}, 0.5, false)
	}
	if wait := o.admit(now, 0); wait != 0 {
		t.Errorf("for the trouble of one manifest another waits %v", wait)
	}
	for i := range outageAfter {
		o.note(now, Key{Name: fmt.Sprint(i)}, 0.5, false)
	}
	if wait := o.admit(now, 0); wait < probeEvery {
		t.Errorf("in an outage a pass waits %v", wait)
	}
	now = now.Add(2 * probeEvery)
	if wait := o.admit(now, 0); wait != 0 {
		t.Errorf("the look waits %v", wait)
	}
	if wait := o.admit(now, 1); wait < probeEvery || wait > probeEvery+comeBack {
		t.Errorf("beside the look a pass waits %v", wait)
	}
	o.note(now, Key{}, 0, true)
	if wait := o.admit(now, 0); wait != 0 {
		t.Errorf("after an answer a pass waits %v", wait)
	}
}

// TestP59_ACrowdLooksLessOften has very many manifests that each look when they were told to.
func TestP59_ACrowdLooksLessOften(t *testing.T) {
	o, now := &outage{}, ms(0)
	for i := range outageAfter {
		o.note(now, Key{Name: fmt.Sprint(i)}, 0.5, false)
	}
	const manifests = lookers
	next := make([]time.Time, manifests)
	looks := 0
	for range 10 * 60 {
		now = now.Add(time.Second)
		for i := range next {
			if now.Before(next[i]) {
				continue
			}
			looks++
			if wait := o.admit(now, float64(i)/manifests); wait > 0 {
				next[i] = now.Add(wait)
			}
		}
		if now.Equal(ms(5 * 60 * 1000)) {
			looks = 0
		}
	}
	if perSecond := looks / (5 * 60); perSecond > 3*crowd || perSecond < crowd/10 {
		t.Errorf("%d looks in a second", perSecond)
	}
}
