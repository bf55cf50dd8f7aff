package store

import (
	"time"

	"github.com/nodeactor/nodeactor/store/adapter"
	"github.com/nodeactor/nodeactor/store/engine"
)

// Stats is what the store's engine counts, and how far its history reaches.
type Stats struct {
	engine.Stats
	// Local tells that the engine is in this process; only then is there more here than revisions.
	Local    bool
	Revision int64
	// CompactedRevision is the revision before which history is gone from the disk; 0 = it is not known yet.
	CompactedRevision int64
	// TendedFor is how long ago history was last looked through for what can be forgotten.
	TendedFor time.Duration
	// WatchEvents are what watches that share encodings have sent since the process began, WatchEncodings how many encodings that took.
	WatchEvents, WatchEncodings int64
}

// Stats counts.
func (s *Store) Stats() Stats {
	st := Stats{Revision: s.index.Revision(), CompactedRevision: s.settled.Load(), TendedFor: s.upkeep.clock.Now().Sub(time.Unix(0, s.tended.Load()))}
	st.WatchEvents, st.WatchEncodings = adapter.Fanout()
	if s.engine != nil {
		st.Stats, st.Local = s.engine.Stats(), true
	}
	return st
}
