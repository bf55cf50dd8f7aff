package operator

import (
	"fmt"
	"time"
)

// Defaults of OperatorConfig.
const (
	// DefaultResync is how long a manifest rests without a pass when nothing changes.
	DefaultResync = 5 * time.Minute
	// DefaultReconcileTimeout bounds one pass.
	DefaultReconcileTimeout = time.Minute
	// DefaultConcurrency is how many passes of a kind run at a time in one process.
	DefaultConcurrency = 64
)

// DefaultBackoff is the wait after failed passes: 1 s, 2 s, 4 s … 60 s, each up to a fifth shorter or longer.
var DefaultBackoff = BackoffPolicy{Initial: time.Second, Factor: 2, Cap: time.Minute, Jitter: 0.2}

// Bounds.
const (
	// minRequeue is the shortest time after which a pass may ask for the next: the window in which changes are gathered.
	minRequeue = 50 * time.Millisecond
	// pollLeast is the shortest requeue that is taken for looking at something outside, which may well be another each time.
	pollLeast = 10 * time.Second
	// maxValue bounds a specification, and what an operator stores as status, in bytes.
	maxValue = 256 << 10
	// maxErrorText is how much of an error is kept in the status, in bytes.
	maxErrorText = 1024
	// commitTimeout bounds the write of what a pass came to. It is shorter than the time a pass is waited for beyond its own.
	commitTimeout = 5 * time.Second
	// maxKind bounds the name of a kind.
	maxKind = 63
)

// OperatorConfig says how an operator is run. The zero value is the default of everything.
type OperatorConfig struct {
	// Resync is how long a manifest rests without a pass when nothing changes, give or take a tenth.
	Resync time.Duration
	// Backoff is the wait after a failed pass.
	Backoff BackoffPolicy
	// Concurrency is how many passes run at a time in one process.
	Concurrency int
	// ReconcileTimeout bounds one pass: its context ends then. A pass that goes on regardless is given up ten seconds later.
	ReconcileTimeout time.Duration
	// Reads are the other kinds the operator reads.
	Reads []Read
}

// withDefaults fills in what is not set.
func (c OperatorConfig) withDefaults() OperatorConfig {
	if c.Resync == 0 {
		c.Resync = DefaultResync
	}
	if c.Backoff == (BackoffPolicy{}) {
		c.Backoff = DefaultBackoff
	}
	if c.Concurrency == 0 {
		c.Concurrency = DefaultConcurrency
	}
	if c.ReconcileTimeout == 0 {
		c.ReconcileTimeout = DefaultReconcileTimeout
	}
	return c
}

// check tells what is wrong with a configuration.
func (c OperatorConfig) check() error {
	switch {
	case c.Resync < time.Second:
		return fmt.Errorf("cannot resync every %s: a second is the least", c.Resync)
	case c.Concurrency < 1:
		return fmt.Errorf("cannot run %d passes at a time: one is the least", c.Concurrency)
	case c.ReconcileTimeout < time.Millisecond:
		return fmt.Errorf("cannot end a pass after %s: a millisecond is the least", c.ReconcileTimeout)
	}
	return c.Backoff.check()
}

// BackoffPolicy is how the wait between failed passes grows.
type BackoffPolicy struct {
	// Initial is the wait after the first failure, Cap the longest; each is Factor times the one before.
	Initial time.Duration
	Factor  float64
	Cap     time.Duration
	// Jitter is by which part of itself a wait may be shorter or longer, from 0 to less than 1.
	Jitter float64
}

func (p BackoffPolicy) check() error {
	if p.Initial <= 0 || p.Factor < 1 || p.Cap < p.Initial || p.Jitter < 0 || p.Jitter >= 1 {
		return fmt.Errorf("cannot back off by %+v: it takes a positive Initial, a Factor of at least 1, a Cap of at least Initial and a Jitter below 1", p)
	}
	return nil
}

// Wait is the wait after so many failures in a row; rnd in [0,1) chooses within the jitter.
func (p BackoffPolicy) Wait(failures int, rnd float64) time.Duration {
	wait := float64(p.Initial)
	for i := 1; i < failures && wait < float64(p.Cap); i++ {
		wait *= p.Factor
	}
	wait = min(wait, float64(p.Cap))
	return time.Duration(wait * (1 + p.Jitter*(2*rnd-1)))
}

// longest is the most a wait can be.
func (p BackoffPolicy) longest() time.Duration { return time.Duration(float64(p.Cap) * (1 + p.Jitter)) }
