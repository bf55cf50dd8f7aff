package storage

import (
	"log/slog"

	"github.com/nodeactor/nodeactor/supervision"
)

// Option changes how a store works.
type Option func(*options)

type options struct {
	clock    supervision.Clock
	log      *slog.Logger
	announce bool
}

// WithClock makes sessions run out by a clock other than the machine's.
func WithClock(c supervision.Clock) Option { return func(o *options) { o.clock = c } }

// WithLog makes a store log elsewhere than by the default logger.
func WithLog(l *slog.Logger) Option { return func(o *options) { o.log = l } }

// WithoutAnnouncements makes the end of a process of a shared store no news: its session has to run out. For tests of just that.
func WithoutAnnouncements() Option { return func(o *options) { o.announce = false } }

func chosen(opts []Option) options {
	o := options{clock: supervision.RealClock(), log: slog.Default(), announce: true}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}
