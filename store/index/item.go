package index

import (
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/nodeactor/nodeactor/store/engine"
)

// Item is one stored version of one object. It is immutable and shared: nobody may change what it points to.
type Item struct {
	Key            string
	Value          []byte
	CreateRevision int64
	ModRevision    int64
	Lease          int64 // 0 = none

	forms Forms
}

// NewItem returns the item of a stored version.
func NewItem(kv engine.KV) *Item {
	return &Item{Key: kv.Key, Value: kv.Value, CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision, Lease: kv.Lease}
}

// Forms is where decoders keep what they made of the item.
func (i *Item) Forms() *Forms { return &i.forms }

// versionedOwner is the owner of the form that Versioned caches.
type versionedOwner struct{}

// Versioned returns the item's external form, decoding it with decode the first time. The object is shared and must not be changed.
// Whoever calls first decides the form, so all callers of one store must agree on it.
func (i *Item) Versioned(decode func([]byte) (runtime.Object, error)) (runtime.Object, error) {
	if v := i.forms.Get(versionedOwner{}); v != nil {
		return v.(runtime.Object), nil
	}
	obj, err := decode(i.Value)
	if err != nil {
		return nil, err
	}
	return i.forms.Set(versionedOwner{}, obj).(runtime.Object), nil
}

// plainOwner is the owner of an item's value without its encryption.
type plainOwner struct{ by any }

// Plain returns the item's value as by, which is comparable, decrypts it with open, and keeps that beside the item.
func (i *Item) Plain(by any, open func() ([]byte, error)) ([]byte, error) {
	if v := i.forms.Get(plainOwner{by}); v != nil {
		return v.([]byte), nil
	}
	data, err := open()
	if err != nil {
		return nil, err
	}
	return i.forms.Set(plainOwner{by}, data).([]byte), nil
}

// Forms caches values derived from something immutable, one per owner. It is safe for concurrent use; the zero value is empty.
type Forms struct {
	head atomic.Pointer[form]
}

type form struct {
	owner any
	value any
	next  *form
}

// Get returns the value of owner, or nil.
func (f *Forms) Get(owner any) any {
	return f.head.Load().find(owner)
}

func (n *form) find(owner any) any {
	for ; n != nil; n = n.next {
		if n.owner == owner {
			return n.value
		}
	}
	return nil
}

// Set caches value for owner unless there is one, and returns the one that is cached.
func (f *Forms) Set(owner, value any) any {
	for {
		head := f.head.Load()
		if v := head.find(owner); v != nil {
			return v
		}
		if f.head.CompareAndSwap(head, &form{owner: owner, value: value, next: head}) {
			return value
		}
	}
}
