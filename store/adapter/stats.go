package adapter

import (
	"context"
	"errors"
	"sync/atomic"

	"k8s.io/apiserver/pkg/storage"
)

// sizes remembers whether object sizes are wanted.
type sizes struct {
	enabled atomic.Bool
}

// EnableResourceSizeEstimation implements storage.Interface. The index knows all sizes, so the keys are not needed.
func (s *Store) EnableResourceSizeEstimation(keys storage.KeysFunc) error {
	if keys == nil {
		return errors.New("cannot estimate sizes: no function for keys")
	}
	if s.sizes.enabled.Swap(true) {
		return errors.New("cannot estimate sizes: already enabled")
	}
	return nil
}

// Stats implements storage.Interface.
func (s *Store) Stats(context.Context) (storage.Stats, error) {
	prefix, err := s.key(s.cfg.ResourcePrefix, true)
	if err != nil {
		return storage.Stats{}, err
	}
	size := s.backend.Index.Size(prefix)
	stats := storage.Stats{ObjectCount: size.Objects}
	if s.sizes.enabled.Load() && size.Objects > 0 {
		stats.EstimatedAverageObjectSizeBytes = size.Bytes / size.Objects
	}
	return stats, nil
}
