package served

import (
	"context"

	"github.com/nodeactor/nodeactor/actors/operator"
)

// reader is what the declared reads of a pass read from: the node's cache.
type reader struct{ *reconciler }

// Get implements operator.Reader.
func (r reader) Get(_ context.Context, kind string, key operator.Key) (operator.Record, error) {
	of := r.kinds[kind]
	record, ok := r.cache.Record(of.resource.cached(), key.Namespace, key.Name)
	if !ok {
		return operator.Record{}, operator.ErrNotFound
	}
	return readRecord(of, record)
}

// List implements operator.Reader.
func (r reader) List(ctx context.Context, kind string) ([]operator.Record, error) {
	var all []operator.Record
	for _, at := range r.cache.Names(r.kinds[kind].resource.cached()) {
		record, err := r.Get(ctx, kind, operator.Key{Namespace: at.Namespace, Name: at.Name})
		if err == operator.ErrNotFound {
			continue // it went meanwhile
		}
		if err != nil {
			return nil, err
		}
		all = append(all, record)
	}
	return all, nil
}
