package cache

import (
	"context"
	"fmt"

	"github.com/nodeactor/nodeactor/store"
)

// FromStore is the Source over the product's store.
func FromStore(s *store.Store) Source { return storeSource{s} }

type storeSource struct{ store *store.Store }

func recordOf(item *store.Item) Record {
	return Record{Key: item.Key, Value: item.Value, ModRevision: item.ModRevision, decoded: item}
}

// Revision implements Source.
func (s storeSource) Revision() int64 { return s.store.Revision() }

// Get implements Source.
func (s storeSource) Get(key string) (Record, bool) {
	item, ok := s.store.Get(key)
	if !ok {
		return Record{}, false
	}
	return recordOf(item), true
}

// List implements Source.
func (s storeSource) List(prefix string) ([]Record, int64) {
	items, revision := s.store.List(prefix)
	records := make([]Record, len(items))
	for i, item := range items {
		records[i] = recordOf(item)
	}
	return records, revision
}

// Follow implements Source.
func (s storeSource) Follow(prefix string, after int64) Stream {
	return storeStream{s.store.Subscribe(store.SubscribeOptions{Prefixes: []string{prefix}, After: after})}
}

type storeStream struct{ *store.Subscription }

// Poll implements Stream.
func (s storeStream) Poll(ctx context.Context) ([]SourceEvent, error) {
	events, err := s.Subscription.Poll(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSourceLost, err)
	}
	converted := make([]SourceEvent, len(events))
	for i, event := range events {
		converted[i] = SourceEvent{Record: recordOf(event.Item), Deleted: event.Type == store.Deleted, Revision: event.Revision}
	}
	return converted, nil
}
