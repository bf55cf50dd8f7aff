package adapter

import "sync/atomic"

// sent and encoded count, over all resources, what Fanout returns.
var sent, encoded atomic.Int64

// Fanout returns how many events watches that share them have sent since the process began, and how many encodings that took: one for each
// event and encoder, however many watches there are. A resource with very few watches shares nothing and is not counted.
func Fanout() (events, encodings int64) { return sent.Load(), encoded.Load() }
