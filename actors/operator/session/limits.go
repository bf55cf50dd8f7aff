package session

import "time"

const (
	// renewWithin bounds the request of a renewal, appendWithin that of a batch of leases, endWithin that of the session's end.
	renewWithin  = 5 * time.Second
	appendWithin = 10 * time.Second
	endWithin    = 2 * time.Second
	// readBeat is the longest silence while all there is is read; readAgain is when it is tried again after a failure.
	readBeat  = 30 * time.Second
	readAgain = 500 * time.Millisecond
	// batchMost is how many leases are written in one request, batchesMost how many requests are under way.
	batchMost   = 2000
	batchesMost = 4
	// stepsAtOnce is after how many events others get the lock.
	stepsAtOnce = 256
)
