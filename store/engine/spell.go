package engine

import (
	"log/slog"
	"sync/atomic"
)

// spell is a condition whose begin and end are logged once each.
type spell struct{ on atomic.Bool }

func (s *spell) begin(log *slog.Logger, text string, args ...any) {
	if !s.on.Load() && s.on.CompareAndSwap(false, true) {
		log.Warn(text, args...)
	}
}

func (s *spell) end(log *slog.Logger, text string) {
	if s.on.Load() && s.on.CompareAndSwap(true, false) {
		log.Info(text)
	}
}
