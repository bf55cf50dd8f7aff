package scheduler

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/nodeactor/nodeactor/actors/cache"
)

// ErrLost is returned when a Feed dropped changes, so the reader has to list again.
var ErrLost = errors.New("changes were dropped, list again")

// Source is where the scheduler learns about the cluster. The objects it gives out are shared and never changed.
type Source interface {
	// Follow opens a feed of the changes after now. Follow first, then list: a change in between is seen at least once.
	Follow() Feed
	// Nodes and Pods list the present state.
	Nodes() []*v1.Node
	Pods() []*v1.Pod
	// Namespace gives a namespace's labels.
	Namespace(name string) (labels map[string]string, ok bool)
	// Guarded tells whether a disruption budget forbids to disturb the pod now.
	Guarded(pod *v1.Pod) bool
}

// Feed is a stream of changes, in the order they happened.
type Feed interface {
	// Next blocks for changes. ErrLost when some were dropped; the context's error when it ends.
	Next(ctx context.Context) ([]Change, error)
	// Close frees the feed.
	Close()
}

// Change is one change of one node or one pod: the object after it, or before it when Deleted.
type Change struct {
	Node    *v1.Node
	Pod     *v1.Pod
	Deleted bool
}

// FromCache is the Source over the control plane's cache.
func FromCache(c *cache.Cache) Source { return cacheSource{c} }

type cacheSource struct{ cache *cache.Cache }

func (s cacheSource) Nodes() []*v1.Node { return cache.List[*v1.Node](s.cache, "", nil) }
func (s cacheSource) Pods() []*v1.Pod   { return cache.List[*v1.Pod](s.cache, "", nil) }

func (s cacheSource) Namespace(name string) (map[string]string, bool) {
	namespace, ok := cache.Get[*v1.Namespace](s.cache, "", name)
	if !ok {
		return nil, false
	}
	return namespace.Labels, true
}

func (s cacheSource) Guarded(pod *v1.Pod) bool {
	for _, budget := range cache.List[*policyv1.PodDisruptionBudget](s.cache, pod.Namespace, nil) {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err == nil && budget.Status.DisruptionsAllowed <= 0 && selector.Matches(labels.Set(pod.Labels)) {
			return true
		}
	}
	return false
}

func (s cacheSource) Follow() Feed {
	nodes, pods := cache.KindOf[*v1.Node](), cache.KindOf[*v1.Pod]()
	return cacheFeed{feed: s.cache.Subscribe(nodes, pods)}
}

type cacheFeed struct{ feed *cache.Feed }

func (f cacheFeed) Close() { f.feed.Close() }

func (f cacheFeed) Next(ctx context.Context) ([]Change, error) {
	records, err := f.feed.Next(ctx)
	if errors.Is(err, cache.ErrLost) {
		return nil, ErrLost
	}
	if err != nil {
		return nil, err
	}
	changes := make([]Change, 0, len(records))
	for _, r := range records {
		changes = append(changes, changeOf(r))
	}
	return changes, nil
}

// changeOf reads a record as a node or a pod; one that is neither, or not readable, gives an empty change.
func changeOf(r cache.Change) Change {
	change := Change{Deleted: r.Deleted()}
	if pod, ok := cache.As[*v1.Pod](r.Latest()); ok {
		change.Pod = pod
	} else if node, ok := cache.As[*v1.Node](r.Latest()); ok {
		change.Node = node
	}
	return change
}
