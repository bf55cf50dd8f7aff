package supervision

import "time"

// Steady is the time in which Node tells its times: it goes on when the machine's clock jumps.
func (s *System) Steady() time.Time { return s.steady() }
