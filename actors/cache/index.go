package cache

import (
	"iter"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// entry is one object as the indexes hold it. It is immutable; a change replaces it.
type entry struct {
	record Record
	meta   *Meta
	// node is where a Pod is placed, empty otherwise.
	node string
}

// keys is a set of store keys.
type keys map[string]struct{}

// index holds all objects and what is looked up other than by key. The caller locks.
type index struct {
	objects map[string]*entry
	byUID   map[types.UID]*entry
	// dependents maps an owner to the keys of the objects that name it.
	dependents map[types.UID]keys
	// loose maps a kind's prefix and namespace to the objects that nobody controls; only for kinds that get adopted.
	loose map[string]keys
	// placed maps a node to its pods.
	placed map[string]keys
	// contents counts the objects of a namespace.
	contents map[string]int
}

func newIndex() *index {
	return &index{
		objects: map[string]*entry{}, byUID: map[types.UID]*entry{},
		dependents: map[types.UID]keys{}, loose: map[string]keys{}, placed: map[string]keys{},
		contents: map[string]int{},
	}
}

// adoptable are the folders of kinds whose objects are adopted by controllers.
var adoptable = map[string]bool{"pods": true, "replicasets": true, "controllerrevisions": true, "jobs": true}

func newEntry(r Record) *entry {
	e := &entry{record: r, meta: metaOf(r)}
	if folder, _ := folderOf(r.Key); folder == "pods" {
		if pod, ok := As[*corev1.Pod](r); ok {
			e.node = pod.Spec.NodeName
		}
	}
	return e
}

// put replaces the entry of a key and returns the one before, nil when there was none.
func (x *index) put(e *entry) *entry {
	before := x.remove(e.record.Key)
	x.objects[e.record.Key] = e
	if e.meta.UID != "" {
		x.byUID[e.meta.UID] = e
	}
	if e.meta.Namespace != "" {
		x.contents[e.meta.Namespace]++
	}
	for _, owner := range e.meta.Owners {
		add(x.dependents, owner.UID, e.record.Key)
	}
	if at, ok := e.looseAt(); ok {
		add(x.loose, at, e.record.Key)
	}
	if e.node != "" {
		add(x.placed, e.node, e.record.Key)
	}
	return before
}

func (x *index) remove(key string) *entry {
	e := x.objects[key]
	if e == nil {
		return nil
	}
	delete(x.objects, key)
	if x.byUID[e.meta.UID] == e {
		delete(x.byUID, e.meta.UID)
	}
	x.uncount(e.meta.Namespace)
	for _, owner := range e.meta.Owners {
		drop(x.dependents, owner.UID, key)
	}
	if at, ok := e.looseAt(); ok {
		drop(x.loose, at, key)
	}
	if e.node != "" {
		drop(x.placed, e.node, key)
	}
	return e
}

func (x *index) uncount(namespace string) {
	if x.contents[namespace]--; x.contents[namespace] <= 0 {
		delete(x.contents, namespace)
	}
}

// looseAt is the place of an adoptable object without controller in the loose index.
func (e *entry) looseAt() (string, bool) {
	folder, _ := folderOf(e.record.Key)
	if !adoptable[folder] {
		return "", false
	}
	for _, owner := range e.meta.Owners {
		if owner.Controller {
			return "", false
		}
	}
	return registryRoot + folder + "/" + e.meta.Namespace, true
}

// pick gives the entries of a key set in key order.
func (x *index) pick(set keys) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for _, key := range slices.Sorted(maps.Keys(set)) {
			if e := x.objects[key]; e != nil && !yield(e) {
				return
			}
		}
	}
}

func add[K comparable](sets map[K]keys, at K, key string) {
	set := sets[at]
	if set == nil {
		set = keys{}
		sets[at] = set
	}
	set[key] = struct{}{}
}

func drop[K comparable](sets map[K]keys, at K, key string) {
	set := sets[at]
	delete(set, key)
	if len(set) == 0 {
		delete(sets, at)
	}
}
