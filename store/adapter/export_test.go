package adapter

import "k8s.io/apiserver/pkg/storage/value"

// SwapTransformer replaces the transformer and forgets everything decoded with the old one, which it returns.
func (s *Store) SwapTransformer(t value.Transformer) value.Transformer {
	old := s.transformer
	s.setTransformer(t)
	return old
}

// NewCorruptError is the error of an unreadable object.
func NewCorruptError(err error) error {
	return &corruptError{untransformable, err}
}

// ForgetRecent lets go of the states kept for further pages, so that they are read from history.
func (s *Store) ForgetRecent() { s.recent.snaps = nil }
