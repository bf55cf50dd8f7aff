package strategy

// Baseline wants what is realized: so many replicas of that shape, always. A set with a schedule is not its business. It is never shed.
type Baseline struct{ Passive }

// Cause is CauseBaseline.
func (Baseline) Cause() Cause { return CauseBaseline }

// Desired wants the realized config.
func (Baseline) Desired(s State, _ Signals, _ Settings, _ Time) []Slots {
	if s.Schedule.OnRefresh || s.Config.ReplicationFactor <= 0 {
		return nil
	}
	return []Slots{{Shape: s.Config.Shape, Count: s.Config.ReplicationFactor, Reason: Reason{Strategy: CauseBaseline}}}
}
