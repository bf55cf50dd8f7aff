package strategy

// Optional is a value that may be absent; its zero value is absent. Two of them can be compared with ==.
type Optional[T comparable] struct {
	value   T
	present bool
}

// Some is a value that is present.
func Some[T comparable](value T) Optional[T] { return Optional[T]{value: value, present: true} }

// Get gives the value, false when it is absent.
func (o Optional[T]) Get() (T, bool) { return o.value, o.present }

// Present tells whether there is a value.
func (o Optional[T]) Present() bool { return o.present }

// Or gives the value, or other when it is absent.
func (o Optional[T]) Or(other T) T {
	if o.present {
		return o.value
	}
	return other
}
