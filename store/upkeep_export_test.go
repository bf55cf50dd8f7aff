package store

import "github.com/nodeactor/nodeactor/supervision"

// TendBy lets maintenance, and nothing else, go by another clock.
func (s *Store) TendBy(c supervision.Clock) {
	s.upkeep.clock = c
	s.tended.Store(c.Now().UnixNano())
}
