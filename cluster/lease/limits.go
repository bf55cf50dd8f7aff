package lease

import "time"

// Times of a session, by the monotonic clock of who measures them.
const (
	// TTL is how long a session lives after its last renewal has reached the authority.
	TTL = 15 * time.Second
	// RenewEvery is how often a session is renewed; a renewal that is not answered is tried again after renewRetry.
	RenewEvery = 5 * time.Second
	renewRetry = time.Second
	// startFor and workFor are how long after a renewal was asked for its holder starts work, and may still have work running. What
	// is left of the TTL is for work to end in, and for clocks that do not run alike: together a fourth of it.
	startFor = 10 * time.Second
	workFor  = 11 * time.Second
	// tombstoneFor is how long the authority refuses a session that was ended: longer than any renewal is on its way.
	tombstoneFor = 2 * TTL
)

// Times of takeover and balance.
const (
	// TickEvery is how often a node has to be ticked.
	TickEvery = 500 * time.Millisecond
	// stepAside is how long a node leaves a lease to each one that it suits better, lastStep the most it waits.
	stepAside = 500 * time.Millisecond
	lastStep  = 2 * stepAside
	// answerWithin is after how long the outcome of a write is taken for unknown.
	answerWithin = 2 * time.Second
	// settle is how long the live nodes must have been the same before leases are given away, batchEvery how often it is done.
	settle     = 2 * time.Second
	batchEvery = time.Second
	// shy is how long a node gives nothing away after it had to take back what it had given.
	shy = TTL
)

// manyTakeable is how many takeable leases are left to the next tick, so that each change need not look at all of them.
const manyTakeable = 64

// entriesAtOnce is for how many manifests room is made at a time.
const entriesAtOnce = 64

// places is how many nodes wait for a lease by their rank; all others wait lastStep.
const places = int(lastStep / stepAside)

// Sizes of the batches in which leases are given away: one in batchPart of what is held, at least batchLeast.
const (
	batchLeast = 5
	batchPart  = 20
)

// restoredStep is what a restore adds to every epoch: more than could have been given since the snapshot.
const restoredStep = 1 << 32

// StopWait is how long a graceful stop waits for work to end and leases to be given back.
const StopWait = 10 * time.Second
