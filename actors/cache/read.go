package cache

import (
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Get reads one object from the newest stored state; namespace is ignored for cluster-scoped kinds. The object is shared: never
// change it. An object that cannot be decoded is logged and counts as absent.
func Get[T Object](c *Cache, namespace, name string) (T, bool) {
	var none T
	kind := KindOf[T]()
	c.noteRead(kind)
	record, ok := c.source.Get(kind.Key(namespace, name))
	if !ok {
		return none, false
	}
	return decoded[T](c, record)
}

// List reads the objects of a namespace, of all namespaces when it is empty, that a selector matches (nil matches all), in key
// order. The objects are shared: never change them.
func List[T Object](c *Cache, namespace string, selector labels.Selector) []T {
	kind := KindOf[T]()
	c.noteRead(kind)
	prefix := kind.Prefix()
	if namespace != "" {
		prefix += namespace + "/"
	}
	records, _ := c.source.List(prefix)
	return matching[T](c, records, selector)
}

// Owned reads the objects of one kind that name an owner, in key order.
func Owned[T Object](c *Cache, owner types.UID) []T {
	return matching[T](c, c.records(func(x *index) keys { return x.dependents[owner] }, KindOf[T]()), nil)
}

// Loose reads the objects of a namespace that a selector matches and that no controller owns: candidates for adoption. It knows
// pods, replica sets, controller revisions and jobs.
func Loose[T Object](c *Cache, namespace string, selector labels.Selector) []T {
	kind := KindOf[T]()
	at := kind.Prefix() + namespace
	return matching[T](c, c.records(func(x *index) keys { return x.loose[at] }, kind), selector)
}

// records collects the current records of one kind in a set of the index. Records come from the index, not from the source, so
// they belong together.
func (c *Cache) records(set func(*index) keys, kind Kind) []Record {
	c.noteRead(kind)
	c.mu.RLock()
	defer c.mu.RUnlock()
	var records []Record
	for e := range c.index.pick(set(c.index)) {
		if folder, _ := folderOf(e.record.Key); folder == kind.Folder {
			records = append(records, e.record)
		}
	}
	return records
}

func matching[T Object](c *Cache, records []Record, selector labels.Selector) []T {
	objects := make([]T, 0, len(records))
	for _, record := range records {
		object, ok := decoded[T](c, record)
		if ok && (selector == nil || selector.Matches(labels.Set(object.GetLabels()))) {
			objects = append(objects, object)
		}
	}
	return objects
}

func decoded[T Object](c *Cache, record Record) (T, bool) {
	object, ok := As[T](record)
	if !ok {
		_, err := record.Object()
		c.log.Error("a stored object is not readable and is passed over", "key", record.Key, "cause", err)
	}
	return object, ok
}

// Has tells whether an object exists in the newest stored state, without decoding it.
func (c *Cache) Has(kind Kind, namespace, name string) bool {
	c.noteRead(kind)
	_, ok := c.source.Get(kind.Key(namespace, name))
	return ok
}

// Names lists the objects of a kind in the newest stored state, in key order, without decoding them.
func (c *Cache) Names(kind Kind) []types.NamespacedName {
	c.noteRead(kind)
	records, _ := c.source.List(kind.Prefix())
	names := make([]types.NamespacedName, 0, len(records))
	for _, record := range records {
		rest := strings.TrimPrefix(record.Key, kind.Prefix())
		namespace, name, ok := strings.Cut(rest, "/")
		if !ok {
			namespace, name = "", rest
		}
		names = append(names, types.NamespacedName{Namespace: namespace, Name: name})
	}
	return names
}
