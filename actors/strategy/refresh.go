package strategy

// OnRefresh keeps one replica of a set with that schedule while its refresh window is open, and none otherwise.
type OnRefresh struct{}

// Cause is CauseOnRefresh.
func (OnRefresh) Cause() Cause { return CauseOnRefresh }

// Request asks for what decides the window.
func (OnRefresh) Request(s State, _ Settings) Request {
	return Request{RefreshWindow: s.Schedule.OnRefresh}
}

// Update shows that the number of replicas is not the user's to choose: it is 0. A reconfiguration in progress writes it itself.
func (OnRefresh) Update(s State, _ Signals, _ Settings, _ Time) StateWrite {
	if _, busy := s.InFlight(); busy || !s.Schedule.OnRefresh || s.Config.ReplicationFactor == 0 {
		return StateWrite{}
	}
	return StateWrite{ReplicationFactor: Set(0)}
}

// Desired wants one replica of the realized shape while the window is open.
func (OnRefresh) Desired(s State, signals Signals, _ Settings, _ Time) []Slots {
	if !s.Schedule.OnRefresh || signals.Refresh == nil {
		return nil
	}
	window := signals.Refresh.window(s.Schedule)
	if !window.Open() {
		return nil
	}
	return []Slots{{Shape: s.Config.Shape, Count: 1, Reason: Reason{Strategy: CauseOnRefresh, Window: window}}}
}
