package hotloop

import "container/list"

// lru is a map that forgets what was not used for longest.
type lru[K comparable, V any] struct {
	limit int
	byKey map[K]*list.Element
	order *list.List
	// dropped is told of what was forgotten; nil for nobody.
	dropped func(*V)
}

type lruEntry[K comparable, V any] struct {
	key   K
	value V
}

func newLRU[K comparable, V any](limit int) *lru[K, V] {
	return &lru[K, V]{limit: limit, byKey: map[K]*list.Element{}, order: list.New()}
}

// get returns the value of a key, nil when there is none, and counts as use.
func (l *lru[K, V]) get(key K) *V {
	e := l.byKey[key]
	if e == nil {
		return nil
	}
	l.order.MoveToFront(e)
	return &e.Value.(*lruEntry[K, V]).value
}

// need returns the value of a key and makes a zero one when there is none.
func (l *lru[K, V]) need(key K) *V {
	if v := l.get(key); v != nil {
		return v
	}
	if l.order.Len() >= l.limit {
		l.drop(l.order.Back())
	}
	entry := &lruEntry[K, V]{key: key}
	l.byKey[key] = l.order.PushFront(entry)
	return &entry.value
}

func (l *lru[K, V]) drop(e *list.Element) {
	entry := e.Value.(*lruEntry[K, V])
	delete(l.byKey, entry.key)
	l.order.Remove(e)
	if l.dropped != nil {
		l.dropped(&entry.value)
	}
}

func (l *lru[K, V]) len() int { return l.order.Len() }

// each calls f for every entry.
func (l *lru[K, V]) each(f func(K, *V)) {
	for e := l.order.Front(); e != nil; e = e.Next() {
		entry := e.Value.(*lruEntry[K, V])
		f(entry.key, &entry.value)
	}
}
