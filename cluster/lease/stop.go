package lease

// stopping is the plan of a graceful stop. Nothing is started any more, running work is called off, and each lease is released as
// soon as its own work has ended, so that others take it at once. When nothing is held, or the wait is over, the session is ended:
// what is then still held was in the middle of work that would not end. It is not released, and its next holder has the next epoch.
type stopping struct {
	began Instant
	on    bool
	ended bool
}

// overdue tells whether the wait for work is over.
func (s stopping) overdue(now Instant) bool { return now-s.began >= StopWait }
