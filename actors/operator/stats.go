package operator

// Stats tell how a control plane does in this process.
type Stats struct {
	// Manifests are those it knows of, Held those whose lease the process holds.
	Manifests, Held int
	// Actors are the manifests that have an actor, Running those in which a pass runs, Waiting those that wait because of Concurrency.
	Actors, Running, Waiting int
	// Succeeded, Failed and Interrupted count passes, Faults those that panicked or hung, Writes what they stored.
	Succeeded, Failed, Interrupted, Faults, Writes uint64
}

// Stats tells how the control plane does in this process; all is zero before it executes.
func (c *ControlPlane[S]) Stats() Stats {
	h := c.core.host.Load()
	if h == nil {
		return Stats{}
	}
	e := h.engine.Stats()
	return Stats{
		Manifests: e.Manifests, Actors: e.Actors, Running: e.Running, Waiting: e.Waiting, Held: h.session.Stats().Held,
		Succeeded: h.tally.succeeded.Load(), Failed: h.tally.failed.Load(), Interrupted: h.tally.interrupted.Load(),
		Faults: h.tally.faults.Load(), Writes: h.tally.writes.Load(),
	}
}
