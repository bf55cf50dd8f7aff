package supervision

// Spec is what the tree was started with, overrides included; nil before Start. It is not to be
// changed.
func (s *System) Spec() *Spec {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spec
}
