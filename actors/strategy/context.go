package strategy

// Context is all that the kernel sees of the world; a fake of it is a world. An error about one set leaves the set out of the tick.
type Context interface {
	// Now is read once for each of the two steps of a tick.
	Now() Time
	// ManagedSets lists the sets of users. Those of the system are nobody's business here, and an observer sees none.
	ManagedSets() ([]SetID, error)
	// States reads sets from one look; those that are missing or not managed are left out, as are replicas that are marked internal.
	// A spec that was changed has been folded in.
	States([]SetID) ([]State, error)
	// HydratedReplicas tells which of the replicas are online with all their objects caught up, transient ones aside.
	HydratedReplicas(SetID, []ReplicaID) ([]ReplicaID, error)
	// HasHydratableObjects tells whether the set has anything to hydrate.
	HasHydratableObjects(SetID) (bool, error)
	// RefreshInputs gives what decides the refresh window, nil when nothing of the set is refreshed.
	RefreshInputs(SetID) (*RefreshInputs, error)
	// Apply does all of a batch, with its audit records, or nothing. It compares what is stored with Expected in the same transaction
	// and rejects the batch on any difference. Room is judged by what is there after all creates and drops. An error says that it is
	// not known whether the batch was applied, which the next tick will see.
	Apply(Batch) (Outcome, error)
}

// Observer is a Context that can be made to look only: while ReadOnly it shows no sets and rejects all batches, so that the kernel can
// go on ticking and works again as soon as it may.
type Observer struct {
	Context
	ReadOnly func() bool
}

// ManagedSets lists no sets while ReadOnly.
func (o Observer) ManagedSets() ([]SetID, error) {
	if o.ReadOnly() {
		return nil, nil
	}
	return o.Context.ManagedSets()
}

// Apply rejects the batch while ReadOnly.
func (o Observer) Apply(b Batch) (Outcome, error) {
	if o.ReadOnly() {
		return Rejected, nil
	}
	return o.Context.Apply(b)
}
