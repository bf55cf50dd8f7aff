package strategy

// Field is what strategies want one field to be: nothing, a value, or things that exclude each other, which freezes it.
type Field[T comparable] struct {
	value  T
	set    bool
	frozen bool
}

// Set is a field that is to be value.
func Set[T comparable](value T) Field[T] { return Field[T]{value: value, set: true} }

// Get gives the value, false when the field is to stay as it is.
func (f Field[T]) Get() (T, bool) { return f.value, f.set }

// join is the least that says both: the same value in whatever order, and frozen once there are two.
func (f Field[T]) join(g Field[T]) Field[T] {
	switch {
	case f.frozen || g.frozen || f.set && g.set && f.value != g.value:
		return Field[T]{frozen: true}
	case f.set:
		return f
	}
	return g
}

// into writes the value where there is one.
func (f Field[T]) into(target *T) {
	if f.set {
		*target = f.value
	}
}

// unless forgets a value that is there already.
func (f Field[T]) unless(current T) Field[T] {
	if f.set && f.value == current {
		return Field[T]{}
	}
	return f
}

// Change is what becomes of a record: it is written, or cleared when the record is absent. Audit is absent for bookkeeping.
type Change[T comparable] struct {
	Record Optional[T]
	Audit  Optional[Audit]
}

// StateWrite is what is to change of a set's durable state; its zero value changes nothing.
type StateWrite struct {
	Size              Field[string]
	ReplicationFactor Field[int]
	AvailabilityZones Field[Zones]
	Logging           Field[Logging]
	Compression       Field[bool]
	Template          Field[string]
	Reconfiguration   Field[Change[Reconfiguration]]
	Burst             Field[Change[Burst]]
}

// realize adds all fields of a config.
func (w StateWrite) realize(c Config) StateWrite {
	w.Size, w.ReplicationFactor = Set(c.Shape.Size), Set(c.ReplicationFactor)
	w.AvailabilityZones, w.Logging, w.Compression = Set(c.Shape.AvailabilityZones), Set(c.Shape.Logging), Set(c.Shape.Compression)
	w.Template = Set(c.Shape.Template)
	return w
}

// Empty tells whether the write changes nothing.
func (w StateWrite) Empty() bool { return w == StateWrite{} || w.settled() == StateWrite{} }

// settled is the write without its frozen fields.
func (w StateWrite) settled() StateWrite {
	return StateWrite{
		Size: w.Size.settled(), ReplicationFactor: w.ReplicationFactor.settled(), AvailabilityZones: w.AvailabilityZones.settled(),
		Logging: w.Logging.settled(), Compression: w.Compression.settled(), Template: w.Template.settled(),
		Reconfiguration: w.Reconfiguration.settled(), Burst: w.Burst.settled(),
	}
}

func (f Field[T]) settled() Field[T] {
	if f.frozen {
		return Field[T]{}
	}
	return f
}

// Audits lists the audit records of the write.
func (w StateWrite) Audits() []Audit {
	var audits []Audit
	if change, ok := w.Reconfiguration.Get(); ok && change.Audit.Present() {
		audits = append(audits, change.Audit.value)
	}
	if change, ok := w.Burst.Get(); ok && change.Audit.Present() {
		audits = append(audits, change.Audit.value)
	}
	return audits
}

// With is the state after a write.
func (d Durable) With(w StateWrite) Durable {
	shape := &d.Config.Shape
	w.Size.into(&shape.Size)
	w.ReplicationFactor.into(&d.Config.ReplicationFactor)
	w.AvailabilityZones.into(&shape.AvailabilityZones)
	w.Logging.into(&shape.Logging)
	w.Compression.into(&shape.Compression)
	w.Template.into(&shape.Template)
	if change, ok := w.Reconfiguration.Get(); ok {
		d.Reconfiguration = change.Record
	}
	if change, ok := w.Burst.Get(); ok {
		d.Burst = change.Record
	}
	return d
}

// against is what of the write the state does not say already.
func (w StateWrite) against(d Durable) StateWrite {
	shape := d.Config.Shape
	w.Size = w.Size.unless(shape.Size)
	w.ReplicationFactor = w.ReplicationFactor.unless(d.Config.ReplicationFactor)
	w.AvailabilityZones = w.AvailabilityZones.unless(shape.AvailabilityZones)
	w.Logging = w.Logging.unless(shape.Logging)
	w.Compression = w.Compression.unless(shape.Compression)
	w.Template = w.Template.unless(shape.Template)
	if change, ok := w.Reconfiguration.Get(); ok && change.Record == d.Reconfiguration {
		w.Reconfiguration = Field[Change[Reconfiguration]]{}
	}
	if change, ok := w.Burst.Get(); ok && change.Record == d.Burst {
		w.Burst = Field[Change[Burst]]{}
	}
	return w
}
