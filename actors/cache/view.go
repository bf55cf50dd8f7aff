package cache

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MetaByUID is the metadata of a live object of any kind; nil when there is none.
func (c *Cache) MetaByUID(uid types.UID) *Meta {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if e := c.index.byUID[uid]; e != nil {
		return e.meta
	}
	return nil
}

// MetaByKey is the metadata of a live object by its store key; nil when there is none.
func (c *Cache) MetaByKey(key string) *Meta {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if e := c.index.objects[key]; e != nil {
		return e.meta
	}
	return nil
}

// Dependents is the metadata of all objects of any kind that name an owner, in key order.
func (c *Cache) Dependents(owner types.UID) []*Meta {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var metas []*Meta
	for e := range c.index.pick(c.index.dependents[owner]) {
		metas = append(metas, e.meta)
	}
	return metas
}

// Metas calls visit for every stored object of any kind until it returns false, in no order. It holds the cache's lock: visit
// must be quick and must not call the cache.
func (c *Cache) Metas(visit func(*Meta) bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, e := range c.index.objects {
		if !visit(e.meta) {
			return
		}
	}
}

// PodsOn reads the pods placed on a node, in key order.
func (c *Cache) PodsOn(node string) []*corev1.Pod {
	records := c.records(func(x *index) keys { return x.placed[node] }, KindOf[*corev1.Pod]())
	return matching[*corev1.Pod](c, records, nil)
}

// Contents is how many objects a namespace holds.
func (c *Cache) Contents(namespace string) int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.index.contents[namespace]
}

// HasPods tells whether the newest stored state of a namespace has a pod.
func (c *Cache) HasPods(namespace string) bool {
	kind := KindOf[*corev1.Pod]()
	c.noteRead(kind)
	records, _ := c.source.List(kind.Prefix() + namespace + "/")
	return len(records) > 0
}

// Placements lists the names of the nodes that pods are placed on, in no order.
func (c *Cache) Placements() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Collect(maps.Keys(c.index.placed))
}
