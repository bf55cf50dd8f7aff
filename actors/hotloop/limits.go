package hotloop

import "time"

// Limits that a reconciler has to reach before it is paused. Each is far from what a healthy one does: a healthy reconciler writes
// because something else has changed, and stops.
const (
	// window is the span in which writes and foreign wakes are counted against each other.
	window = 10 * time.Second
	// noOps is how many writes without meaning trip within the window, when foreign wakes are less than half as many.
	noOps = 20
	// writes is how many writes of one object trip within the window, when foreign wakes are less than a tenth of them.
	writes = 60
	// busySpan and busySeconds find the slow loop: at least so many seconds with a write among so many seconds.
	busySpan, busySeconds = 60, 50
	// ringSize is how many contents of an object are remembered.
	ringSize = 8
	// returns is how many times in a row one writer brings back an earlier content before it trips; reached within five cycles.
	returns = 6
	// undos is how many times each of two writers restores what the other replaced before it trips; reached within five cycles.
	undos = 3
	// quiet is how long an object is left alone before its contents are forgotten: two fallbacks, half a minute and a debounce.
	quiet = 90*time.Second + 50*time.Millisecond
	// creates is how many objects may be made in the place of ones that failed at once, within createWindow.
	creates      = 10
	createWindow = time.Minute
	// recreates is that for ones that somebody else deleted at once, over no less than recreateSpan: a person who clears a
	// namespace is no loop.
	recreates    = 30
	recreateSpan = 5 * time.Second
)

// SoonAfter is how long after its creation the end of an object counts as its rejection.
const SoonAfter = 10 * time.Second

// Pauses.
const (
	// pauseFirst is the first pause; each further one is twice as long, up to pauseLast.
	pauseFirst = 10 * time.Second
	pauseLast  = 5 * time.Minute
	// forgiveAfter is the quiet time behind a pause after which it is forgotten.
	forgiveAfter = 10 * time.Minute
)

// Bounds of memory; what was quiet for longest goes first.
const (
	maxPairs   = 8192
	maxObjects = 4096
	maxWriters = 8192
)
