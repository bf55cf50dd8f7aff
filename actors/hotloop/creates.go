package hotloop

import "time"

// made is what is known of the objects that one reconciler makes.
type made struct {
	// began is the start of the window. ended counts early ends that no creation has answered yet, answered those that one has.
	began           time.Time
	ended, answered int
	// deletions and redone are the same for objects that somebody deleted.
	deletions, redone int
	firstRedone       time.Time
	// other ended an object last, which was object.
	other  Writer
	object Object
}

// turn begins a new window when the old one is over.
func (m *made) turn(now time.Time) {
	if now.Sub(m.began) >= createWindow {
		*m = made{began: now, other: m.other, object: m.object}
	}
}

// end notes an early end.
func (m *made) end(now time.Time, e Event) {
	m.turn(now)
	m.other, m.object = e.Other, e.Object
	if e.Kind == Deleted {
		m.deletions++
		return
	}
	m.ended++
}

// create notes the next creation and tells whether it is one too many.
func (m *made) create(now time.Time) (count int, tripped bool) {
	m.turn(now)
	switch {
	case m.ended > 0:
		m.ended--
		m.answered++
	case m.deletions > 0:
		if m.redone == 0 {
			m.firstRedone = now
		}
		m.deletions--
		m.redone++
	}
	if m.answered >= creates {
		return m.answered, true
	}
	return m.redone, m.redone >= recreates && now.Sub(m.firstRedone) >= recreateSpan
}
