package core

import "time"

func testChild(id string) ChildSpec {
	r := Reaction{Do: DoRestart, Backoff: Backoff{Initial: time.Second, Factor: 2, Cap: 8 * time.Second, Reset: time.Minute}}
	return ChildSpec{
		ID: id, Row: id, Kind: Worker, Restart: Permanent,
		StartTimeout: time.Second, HangAfter: time.Second, StopTimeout: 5 * time.Second,
		Mailbox: Mailbox{Limit: 1, Overflow: RejectNewest}, Policy: [NumFaultKinds]Reaction{r, r, r, r},
	}
}
