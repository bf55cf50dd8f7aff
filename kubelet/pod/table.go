package pod

import (
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/nodeactor/nodeactor/kubelet/runtime"
)

// Table is what the node's parts know of its pods; safe for concurrent use. Values are shared: read, do not write.
type Table struct {
	mu   sync.RWMutex
	pods map[string]*entry
}

type entry struct {
	pod    *v1.Pod // spec as last given, status as last decided
	record *runtime.PodRecord
	begun  bool                     // an actor has been started for it
	gone   map[string]chan struct{} // by container ID, closed at its end
}

// NewTable makes an empty table.
func NewTable() *Table { return &Table{pods: map[string]*entry{}} }

// Put enters a pod or a newer version of it. The status of an entered pod stays that of its actor.
func (t *Table) Put(p *v1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.pods[string(p.UID)]
	if e == nil {
		t.pods[string(p.UID)] = &entry{pod: p, gone: map[string]chan struct{}{}}
		return
	}
	merged := *p
	merged.Status = e.pod.Status
	e.pod = &merged
}

// Get finds a pod by UID.
func (t *Table) Get(uid string) (*v1.Pod, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if e := t.pods[uid]; e != nil {
		return e.pod, true
	}
	return nil, false
}

// Find finds a pod by namespace and name, and by UID if one is given. Of several it prefers one that is not leaving.
func (t *Table) Find(namespace, name, uid string) (*v1.Pod, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var found *v1.Pod
	for _, e := range t.pods {
		if e.pod.Namespace != namespace || e.pod.Name != name || uid != "" && string(e.pod.UID) != uid {
			continue
		}
		if found == nil || found.DeletionTimestamp != nil {
			found = e.pod
		}
	}
	return found, found != nil
}

// List returns all pods in no particular order.
func (t *Table) List() []*v1.Pod {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := make([]*v1.Pod, 0, len(t.pods))
	for _, e := range t.pods {
		out = append(out, e.pod)
	}
	return out
}

// UIDs returns the UIDs of all pods.
func (t *Table) UIDs() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Collect(maps.Keys(t.pods))
}

// Remove forgets a pod.
func (t *Table) Remove(uid string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.pods[uid]; e != nil {
		for _, c := range e.gone {
			close(c)
		}
		delete(t.pods, uid)
	}
}

// SetRecord keeps what the runtime has of a pod, for its actor's start; nil when it has nothing.
func (t *Table) SetRecord(uid string, r *runtime.PodRecord) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.pods[uid]; e != nil {
		e.record = r
	}
}

// begin returns what SetRecord kept to the first actor of a pod; first is false for later ones, which must look anew.
func (t *Table) begin(uid string) (rec *runtime.PodRecord, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.pods[uid]
	if e == nil || e.begun {
		return nil, false
	}
	e.begun = true
	return e.record, true
}

// Ended is closed when the container is gone; at once when it is not known.
func (t *Table) Ended(uid, containerID string) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.pods[uid]; e != nil {
		if c := e.gone[containerID]; c != nil {
			return c
		}
	}
	c := make(chan struct{})
	close(c)
	return c
}

// setStatus keeps what the pod's actor decided; running are the IDs of the containers that live.
func (t *Table) setStatus(uid string, s v1.PodStatus, running []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.pods[uid]
	if e == nil {
		return
	}
	p := *e.pod
	p.Status = s
	e.pod = &p
	for id, c := range e.gone {
		if !slices.Contains(running, id) {
			close(c)
			delete(e.gone, id)
		}
	}
	for _, id := range running {
		if e.gone[id] == nil {
			e.gone[id] = make(chan struct{})
		}
	}
}
