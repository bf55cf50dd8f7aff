// Package eventsttl removes Events an hour after they were last counted, and the oldest when there are too many.
package eventsttl

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator"
)

// Limits of retention.
const (
	// retention is how long an Event is kept after it was last counted.
	retention = time.Hour
	// most is how many Events are kept.
	most = 20000
	// batch is how many are deleted in one pass.
	batch = 1024
	// parallel is how many are deleted at a time.
	parallel = 4
	// pause is how long until the next pass when one did not suffice.
	pause = time.Second
)

// all is the one key of this controller.
var all = operator.Key{Name: "retention"}

var kind = cache.KindOf[*corev1.Event]()

// New makes the controller. It looks on the operator's fallback, no Event wakes it.
func New(c *cache.Cache, client kubernetes.Interface, clock operator.Clock) operator.Controller {
	return operator.Controller{
		Name:       "events-ttl",
		Initial:    func(*cache.Cache) []operator.Key { return []operator.Key{all} },
		Reads:      []operator.Read{operator.Silent(kind)},
		Reconciler: &reconciler{cache: c, client: client, clock: clock},
	}
}

// reconciler runs passes over all Events.
type reconciler struct {
	cache  *cache.Cache
	client kubernetes.Interface
	clock  operator.Clock
}

// Reconcile implements operator.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, _ operator.Key) (operator.Action, error) {
	expired := r.expired(r.events(), r.clock.Now())
	more := len(expired) > batch
	expired = expired[:min(batch, len(expired))]
	err := operator.Parallel(ctx, parallel, len(expired), func(ctx context.Context, i int) error { return r.remove(ctx, expired[i]) })
	if more {
		return operator.Requeue(pause), err
	}
	return operator.None(), err
}

// events lists the metadata of all Events, oldest first.
func (r *reconciler) events() []*cache.Meta {
	var events []*cache.Meta
	r.cache.Metas(func(m *cache.Meta) bool {
		if kind.Holds(m.Key) {
			events = append(events, m)
		}
		return true
	})
	slices.SortFunc(events, func(a, b *cache.Meta) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.Revision, b.Revision))
	})
	return events
}

// expired picks what is to go: the surplus, and of the rest what was made and last counted too long ago.
func (r *reconciler) expired(oldestFirst []*cache.Meta, now time.Time) []*cache.Meta {
	limit := now.Add(-retention)
	surplus := max(0, len(oldestFirst)-most)
	expired := slices.Clone(oldestFirst[:surplus])
	for _, m := range oldestFirst[surplus:] {
		if m.Created > limit.Unix() {
			break
		}
		if r.lastSeen(m).Before(limit) {
			expired = append(expired, m)
		}
	}
	return expired
}

// lastSeen is the newest time an Event carries; one that cannot be read counts by its creation.
func (r *reconciler) lastSeen(m *cache.Meta) time.Time {
	newest := time.Unix(m.Created, 0)
	event, ok := cache.Get[*corev1.Event](r.cache, m.Namespace, m.Name)
	if !ok {
		return newest
	}
	times := []time.Time{event.LastTimestamp.Time, event.EventTime.Time}
	if event.Series != nil {
		times = append(times, event.Series.LastObservedTime.Time)
	}
	for _, t := range times {
		if t.After(newest) {
			newest = t
		}
	}
	return newest
}

// remove deletes an Event unless it was counted up meanwhile.
func (r *reconciler) remove(ctx context.Context, m *cache.Meta) error {
	revision := fmt.Sprint(m.Revision)
	err := r.client.CoreV1().Events(m.Namespace).Delete(ctx, m.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{ResourceVersion: &revision},
	})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("cannot delete event %s/%s: %w", m.Namespace, m.Name, err)
}
