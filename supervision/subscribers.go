package supervision

import "slices"

// subscribers are told of something, one after the other and the oldest first. The lock of
// whoever has them guards the list, which is never changed in place: what was read under the
// lock may be told without it.
type subscribers[T any] struct{ all []*func(T) }

// add returns how to take f out again; both are done under the lock.
func (s *subscribers[T]) add(f func(T)) (remove func()) {
	s.all = append(slices.Clip(s.all), &f)
	return func() {
		s.all = slices.DeleteFunc(slices.Clone(s.all), func(other *func(T)) bool { return other == &f })
	}
}

// tell calls subscribers with no lock held.
func tell[T any](all []*func(T), what T) {
	for _, f := range all {
		contain(func() { (*f)(what) })
	}
}

// contain runs a subscriber, whose own panic is none of the child's business.
func contain(f func()) {
	defer func() {
		if v := recover(); v != nil {
			panics.Add(1)
		}
	}()
	f()
}
