package health

import (
	"fmt"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// unansweredAfter is the age of a port's last answer to itself from which it is not believed to answer others: longer than
// the pause between two of its requests, and shorter than the watchdog waits before it replaces the port.
const unansweredAfter = 15 * time.Second

// ports are the rows whose children own a port.
var ports = func() map[string]bool {
	rows := map[string]bool{}
	for _, e := range catalog.Rows {
		if e.Class == catalog.Listener {
			rows[e.Spec.Row] = true
		}
	}
	return rows
}()

// asPort judges a port beyond its state: it is ready only while it is bound and has answered its last request to itself.
func (v *Verdict) asPort(n supervision.Node, now time.Time) {
	v.Port = true
	if silent := now.Sub(n.LastBeat); v.Reason == nil && n.State == core.Running && !n.LastBeat.IsZero() && silent > unansweredAfter {
		v.Reason = fmt.Errorf("it has not answered its own requests for %s", silent.Round(time.Second))
	}
}
