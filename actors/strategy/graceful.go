package strategy

// GracefulReconfiguration carries a set from its realized config to the target of its record: both are there until the target is
// hydrated, then the target becomes what is realized, in one write.
type GracefulReconfiguration struct{}

// Cause is CauseGracefulReconfiguration.
func (GracefulReconfiguration) Cause() Cause { return CauseGracefulReconfiguration }

// Request asks which replicas are hydrated while a change is in progress that has to wait for some.
func (GracefulReconfiguration) Request(s State, _ Settings) Request {
	r, ok := s.InFlight()
	return Request{Hydration: ok && r.Target.ReplicationFactor > 0}
}

// Update ends the change: by cutting over once the target is hydrated, whatever the clock says, else at the deadline.
func (GracefulReconfiguration) Update(s State, signals Signals, _ Settings, now Time) StateWrite {
	r, ok := s.InFlight()
	switch {
	case !ok:
		return StateWrite{}
	case signals.hydrated(s, r.Target.Shape) >= r.Target.ReplicationFactor:
		return cutOver(r, false)
	case now < r.Deadline:
		return StateWrite{}
	case r.OnTimeout == Commit:
		return cutOver(r, true)
	}
	return end(r, TimedOut, Audit{Event: ReconfigurationTimedOut})
}

func cutOver(r Reconfiguration, forced bool) StateWrite {
	return end(r, Finalized, Audit{Event: ReconfigurationFinalized, Forced: forced}).realize(r.Target)
}

// end turns the record into a tombstone.
func end(r Reconfiguration, status Status, audit Audit) StateWrite {
	r.Status = status
	return StateWrite{Reconfiguration: Set(Change[Reconfiguration]{Record: Some(r), Audit: Some(audit)})}
}

// Desired wants the target beside what is realized. A deadline that passed since Update looked is left to the next tick to judge: until
// then the target loses no replica and gets no new one.
func (GracefulReconfiguration) Desired(s State, _ Signals, _ Settings, now Time) []Slots {
	r, ok := s.InFlight()
	if !ok {
		return nil
	}
	n := r.Target.ReplicationFactor
	if now >= r.Deadline {
		n = min(n, s.count(r.Target.Shape))
	}
	if n <= 0 {
		return nil
	}
	return []Slots{{Shape: r.Target.Shape, Count: n, Reason: Reason{Strategy: CauseGracefulReconfiguration}}}
}

// Shed gives up the change; what is realized stays.
func (GracefulReconfiguration) Shed(s State) StateWrite {
	r, ok := s.InFlight()
	if !ok {
		return StateWrite{}
	}
	return end(r, ResourceExhausted, Audit{Event: ReconfigurationExhausted})
}
