package kube

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodeactor/nodeactor/actors/hotloop"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// Conditions that tell how an object's reconcilers do. They appear when something is wrong for the first time.
const (
	// ConditionHealthy is False while a reconciler of the object crashes, hangs or fails.
	ConditionHealthy = "ReconcilerHealthy"
	// ConditionHotLoop is True while a reconciler of the object pauses because it writes in circles.
	ConditionHotLoop = "HotLoop"
)

// Reasons of conditions and Events.
const (
	// ReasonRestarting is a reconciler that crashed and is started again on its back-off.
	ReasonRestarting = "Restarting"
	// ReasonCrashLoop is one that used up its restarts and is tried once in a while.
	ReasonCrashLoop = "CrashLoopBackOff"
	// ReasonFailing is one whose passes end in errors.
	ReasonFailing = "ReconcileError"
	// ReasonRecovered is one that does well again.
	ReasonRecovered = "Recovered"
	// ReasonReleased is one whose pause is over.
	ReasonReleased = "Released"

	// eventBackOff, eventCrashLoop, eventFailing and eventRecovered are the reasons of Events; hot loops have eventHotLoop and
	// eventReleased.
	eventBackOff   = "ReconcilerBackOff"
	eventCrashLoop = "ReconcilerCrashLoop"
	eventFailing   = "ReconcilerFailing"
	eventRecovered = "ReconcilerRecovered"
	eventHotLoop   = "HotLoop"
	eventReleased  = "HotLoopReleased"
)

const (
	// failuresTold is how many failed passes in a row are told on the object; fewer are every day's business.
	failuresTold = 5
	// causeLimit is how much of a cause is told, in bytes.
	causeLimit = 512
)

// complaint is what is known of one reconciler of one object.
type complaint struct {
	// fault is the last one since the reconciler did well; faults counts them, parked and next tell what comes.
	fault  *supervision.Fault
	faults int
	parked bool
	// stuck is how many of its passes hang, when no further one begins because of them.
	stuck int
	next  time.Time
	// failure is the error of the last of failures failed passes in a row.
	failure  error
	failures int
	// trip is the pause in force.
	trip *hotloop.Trip
	// inherited is what an earlier life of the process left: nothing but a condition.
	inherited *condition
}

func (c *complaint) healthy() bool {
	return c.faults == 0 && c.stuck == 0 && c.failure == nil && c.inherited == nil
}

// over tells that nothing is left to be told of.
func (c *complaint) over() bool { return c.healthy() && c.trip == nil }

// says is the reason and the words of a complaint about health.
func (c *complaint) says() (reason, message string) {
	switch {
	case c.stuck > 0:
		return ReasonCrashLoop, fmt.Sprintf("%d passes have not returned: no further one begins until one does, the object changes or the node is started anew", c.stuck)
	case c.fault != nil:
		reason = ReasonRestarting
		if c.parked {
			reason = ReasonCrashLoop
		}
		return reason, fmt.Sprintf("%s; %s, next try %s", aboutFault(c.fault), times(c.faults), clockTime(c.next))
	case c.failure != nil:
		return ReasonFailing, shorten(c.failure.Error())
	}
	return c.inherited.Reason, c.inherited.Message
}

// aboutFault tells what kind of fault it was, where and why.
func aboutFault(f *supervision.Fault) string {
	return fmt.Sprintf("%s in %s (stack %s): %s", f.Kind, f.Message, f.StackHash(), shorten(f.Err.Error()))
}

func times(n int) string {
	if n == 1 {
		return "failed once"
	}
	return fmt.Sprintf("failed %d times", n)
}

func clockTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// shorten keeps the first line of a cause, which is all that a person needs beside the name of its stack.
func shorten(cause string) string {
	cause, _, _ = strings.Cut(cause, "\n")
	return cause[:min(len(cause), causeLimit)]
}

// aboutTrip tells what writes in circles, against whom, and what is done about it.
func aboutTrip(t *hotloop.Trip) string {
	pause := fmt.Sprintf("paused until %s (trip %d)", clockTime(t.Until), t.Strikes)
	switch t.Reason {
	case hotloop.MutualUndo:
		return fmt.Sprintf("%s and %s undo each other at %s: %s", t.Writer, t.Other, t.Object, pause)
	case hotloop.CreateReject:
		return fmt.Sprintf("%s makes what %s ends at once, %d times, the last was %s: %s", t.Writer, t.Other, t.Count, t.Object, pause)
	case hotloop.Oscillation:
		return fmt.Sprintf("%s goes round in the same contents of %s: %s", t.Writer, t.Object, pause)
	case hotloop.NoOpWrites:
		return fmt.Sprintf("%s wrote %s %d times without changing it: %s", t.Writer, t.Object, t.Count, pause)
	}
	return fmt.Sprintf("%s wrote %s %d times though nothing else had changed: %s", t.Writer, t.Object, t.Count, pause)
}

// condition is one condition as it is told, whatever the kind of the object.
type condition struct {
	Type    string                 `json:"type"`
	Status  corev1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message"`
}

// summary is what the conditions of an object should say, by what its controllers complain of. Of several the first in the order of
// names gives the reason; all are in the message.
func summary(complaints map[string]*complaint) (health, hot condition) {
	health = condition{ConditionHealthy, corev1.ConditionTrue, ReasonRecovered, "its reconcilers do well"}
	hot = condition{ConditionHotLoop, corev1.ConditionFalse, ReasonReleased, "no reconciler of it pauses"}
	var sick, circling []string
	for _, name := range slices.Sorted(maps.Keys(complaints)) {
		c := complaints[name]
		if !c.healthy() {
			reason, message := c.says()
			if len(sick) == 0 || reason == ReasonCrashLoop {
				health.Reason = reason
			}
			sick = append(sick, name+": "+message)
		}
		if c.trip != nil {
			if len(circling) == 0 {
				hot.Reason = c.trip.Reason.String()
			}
			circling = append(circling, aboutTrip(c.trip))
		}
	}
	if len(sick) > 0 {
		health.Status, health.Message = corev1.ConditionFalse, strings.Join(sick, separator)
	}
	if len(circling) > 0 {
		hot.Status, hot.Message = corev1.ConditionTrue, strings.Join(circling, separator)
	}
	return health, hot
}

// separator stands between what several controllers say in one message.
const separator = " | "

// accused reads back from the message of a condition what it says of which controller.
func accused(message string) map[string]string {
	says := map[string]string{}
	for part := range strings.SplitSeq(message, separator) {
		if name, what, ok := strings.Cut(part, ": "); ok {
			says[name] = what
		}
	}
	return says
}

// waits tells that a state is one in which a failed child waits for its next try, or is given up.
func waits(s supervision.State) bool {
	return s == core.BackingOff || s == core.Parked || s == core.Dead
}
