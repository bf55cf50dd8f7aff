package operatortest

import "time"

// Times of a fleet.
const (
	// step is how much virtual time passes at once: no message is faster.
	step = 100 * time.Millisecond
	// lasts is how long a story is, stormy until calmFrom.
	lasts, calmFrom = 80 * time.Second, 45 * time.Second
	// longestPass is how long a pass may take.
	longestPass = 400 * time.Millisecond
)

// panicOdds is of how many passes one panics.
const panicOdds = 1000

// workers is how many goroutines let nodes think; each has its own part of the nodes.
const workers = 2

// What a fleet may use of memory: from large on, the product of nodes and manifests, garbage is collected seldom, in per cent of what is live,
// until there are plenty bytes.
const (
	large  = 1_000_000
	seldom = 400
	plenty = 5 << 30
)
