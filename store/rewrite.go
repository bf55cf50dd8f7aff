package store

import (
	"context"
	"errors"
	"time"

	"github.com/nodeactor/nodeactor/store/engine"
)

const (
	// leastWaste is what a rewrite of the database must gain, in bytes, beside a share of the file, here as its divisor.
	leastWaste = 64 << 20
	wasteShare = 2
	// smallStore is how much may be in use for a rewrite to be hardly noticed; then it need not gain so much.
	smallStore = 16 << 20
	smallWaste = 256 << 10
	smallShare = 6
	// largestOnline is the most that may be in use for a rewrite while the node runs; more would keep writes waiting for too long. When the
	// quota presses there is no such bound.
	largestOnline = 2 << 30
	// bloatShare of the file, as its divisor, is what a rewrite must gain when the file is what fills the quota.
	bloatShare = 16
	// quietFor is how long it is looked whether anybody writes, quietWrites how many writes are nobody.
	quietFor    = time.Second
	quietWrites = 10
	// rewriteRest is the least time between two rewrites, pressedRest the same while the quota presses.
	rewriteRest = time.Hour
	pressedRest = time.Minute
	// rewriteFor is how long a call waits for a rewrite; one that takes longer goes on.
	rewriteFor = 20 * time.Second
)

// rewrites remembers the last one, or the last try.
type rewrites struct{ last time.Time }

// wasteful tells whether so much of a file of size bytes is holes that it should be rewritten.
func wasteful(size, inUse int64) bool {
	waste := size - inUse
	if inUse <= smallStore {
		return waste >= smallWaste && waste > size/smallShare
	}
	return waste >= leastWaste && waste > size/wasteShare
}

// rewrite makes the file smaller if that is worth the wait of the writes meanwhile.
func (s *Store) rewrite(ctx context.Context) error {
	if !s.rewriteDue(ctx) {
		return nil
	}
	s.upkeep.rewrites.last = s.upkeep.clock.Now()
	before := s.engine.Stats()
	limited, cancel := context.WithTimeout(ctx, rewriteFor)
	defer cancel()
	freed, err := s.engine.Defragment(limited)
	switch {
	case err == nil:
		s.cfg.Log.Info("the store's file was rewritten without its holes", "dir", s.cfg.Dir, "MB", before.DBSize>>20, "freedMB", freed>>20,
			"took", s.upkeep.clock.Now().Sub(s.upkeep.rewrites.last).Round(time.Millisecond))
	case errors.Is(err, engine.ErrClosed), ctx.Err() != nil:
		return err
	case errors.Is(err, context.DeadlineExceeded):
		s.cfg.Log.Warn("rewriting the store's file takes long; it goes on, and writes wait for it", "dir", s.cfg.Dir, "MB", before.DBSize>>20)
	default:
		s.cfg.Log.Warn("the store's file is not rewritten without its holes now", "dir", s.cfg.Dir, "MB", before.DBSize>>20, "reason", err)
	}
	return nil
}

// rewriteDue tells whether there is something to gain and the moment is good: nobody writes, or the quota presses.
func (s *Store) rewriteDue(ctx context.Context) bool {
	st, since := s.engine.Stats(), s.upkeep.clock.Now().Sub(s.upkeep.rewrites.last)
	switch {
	case st.Bloated && st.DBSize-st.DBInUse >= st.DBSize/bloatShare:
		return since >= pressedRest
	case !wasteful(st.DBSize, st.DBInUse):
		return false
	case s.engine.Need() > engine.AtEase:
		return since >= pressedRest
	}
	return since >= rewriteRest && st.DBInUse <= largestOnline && (st.DBInUse <= smallStore || s.quiet(ctx))
}

// quiet looks for a moment whether anybody writes.
func (s *Store) quiet(ctx context.Context) bool {
	before := s.index.Revision()
	return s.upkeep.clock.Sleep(ctx, quietFor) == nil && s.index.Revision()-before <= quietWrites
}
