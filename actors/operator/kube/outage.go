package kube

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/nodeactor/nodeactor/actors/cache"
)

// While nobody answers.
const (
	// outageAfter is how many passes in a row, no two of one manifest behind each other, must fail because nobody answers before a
	// controller takes it for an outage. What only one manifest meets is its own trouble.
	outageAfter = 3
	// probeEvery is the shortest time between two passes of one controller in an outage.
	probeEvery = time.Second
	// comeBack is the time within which the other manifests look again whether it is over.
	comeBack = 2 * time.Second
)

// outage is what the manifests of one controller share about the store and the API being away. While they are, one pass in a second
// looks for all, and at the return the others come back one by one. It outlives generations.
type outage struct {
	mu     sync.Mutex
	failed int
	last   Key
	down   bool
	probe  time.Time
}

// admit tells how long a pass has to wait, zero for not at all. spread is the manifest's place between 0 and 1.
func (o *outage) admit(now time.Time, spread float64) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.down {
		return 0
	}
	if now.Before(o.probe) {
		return probeEvery + time.Duration(spread*float64(comeBack))
	}
	o.hold(now, spread)
	return 0
}

// hold keeps further passes away for a while, a little longer for some than for others.
func (o *outage) hold(now time.Time, spread float64) {
	o.probe = now.Add(probeEvery + time.Duration(spread*float64(probeEvery)/2))
}

// note takes the end of a pass. away tells that it failed of an outage that is known, changed that the outage began or ended with it.
func (o *outage) note(now time.Time, key Key, spread float64, err error) (away, changed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !isOutage(err) {
		changed = o.down
		o.failed, o.down = 0, false
		return false, changed
	}
	if o.failed == 0 || o.last != key {
		o.failed++
	}
	if o.last = key; o.failed >= outageAfter && !o.down {
		o.down, changed = true, true
		o.hold(now, spread)
	}
	return o.down, changed
}

// isOutage tells that nobody answered, from every answer there is.
func isOutage(err error) bool {
	var unanswered *url.Error
	switch {
	case err == nil || errors.Is(err, ErrPaused):
		return false
	case errors.Is(err, cache.ErrSourceDown) || errors.Is(err, context.DeadlineExceeded):
		return true
	case errors.As(err, &unanswered):
		return true
	}
	return apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err)
}
