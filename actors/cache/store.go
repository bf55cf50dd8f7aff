package cache

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/store/encryption"
)

// FromStore is the Source over the product's store.
func FromStore(s *store.Store) Source { return storeSource{s} }

type storeSource struct{ store *store.Store }

// recordOf shows item as it is without encryption. One that cannot be decrypted keeps its stored value, which nothing can decode.
func (s storeSource) recordOf(item *store.Item) Record {
	r := Record{Key: item.Key, Value: item.Value, ModRevision: item.ModRevision, decoded: item}
	if !encryption.Sealed(item.Value) {
		return r
	}
	if plain, err := s.store.Plain(item); err == nil {
		r.Value, r.decoded = plain, decrypted{item, plain}
	}
	return r
}

// decrypted is an item that is stored encrypted.
type decrypted struct {
	item  *store.Item
	plain []byte
}

// Versioned implements Versioner.
func (d decrypted) Versioned(decode func([]byte) (runtime.Object, error)) (runtime.Object, error) {
	return d.item.Versioned(func([]byte) (runtime.Object, error) { return decode(d.plain) })
}

// Revision implements Source.
func (s storeSource) Revision() int64 { return s.store.Revision() }

// Get implements Source.
func (s storeSource) Get(key string) (Record, bool) {
	item, ok := s.store.Get(key)
	if !ok {
		return Record{}, false
	}
	return s.recordOf(item), true
}

// List implements Source.
func (s storeSource) List(prefix string) ([]Record, int64) {
	items, revision := s.store.List(prefix)
	records := make([]Record, len(items))
	for i, item := range items {
		records[i] = s.recordOf(item)
	}
	return records, revision
}

// Follow implements Source.
func (s storeSource) Follow(prefix string, after int64) Stream {
	return storeStream{s.store.Subscribe(store.SubscribeOptions{Prefixes: []string{prefix}, After: after}), s}
}

type storeStream struct {
	*store.Subscription
	source storeSource
}

// Poll implements Stream.
func (s storeStream) Poll(ctx context.Context) ([]SourceEvent, error) {
	events, err := s.Subscription.Poll(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSourceLost, err)
	}
	converted := make([]SourceEvent, len(events))
	for i, event := range events {
		converted[i] = SourceEvent{Record: s.source.recordOf(event.Item), Deleted: event.Type == store.Deleted, Revision: event.Revision}
	}
	return converted, nil
}
