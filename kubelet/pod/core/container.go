package core

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

type role int

const (
	initRole role = iota
	sidecarRole
	mainRole
	ephemeralRole // added while the pod runs, for people to look around with; never restarted
)

// Run is one attempt of a container as the runtime reports it. Reason and Message are those of a terminated state.
type Run struct {
	ID                    string
	Attempt               int
	Running               bool
	CreatedAt             time.Time
	StartedAt, FinishedAt time.Time
	ExitCode, Signal      int
	Reason, Message       string
	// Image and ImageID are what the run was started from.
	Image, ImageID string
}

// waiting is why a container does not run, besides the ordinary reasons.
type waiting struct{ reason, message string }

// image is how far the image of the next run is.
type image struct {
	progress progress
	failures int
	failedAt time.Time
	retryAt  time.Time
	reason   string
	message  string
	backOff  bool // the BackOff Event of this wait was recorded
	ref, id  string
}

// container is what the machine knows of one container of the pod.
type container struct {
	spec *v1.Container
	role role

	image    image
	starting bool
	cur      *Run // the run that lives, or the last that did
	stale    bool // cur belonged to a sandbox that is gone
	last     *v1.ContainerStateTerminated
	attempts int // runs used so far, which is the number of the next attempt
	crashes  int // crashes in a row
	oldRuns  []string

	wait         waiting
	retryAt      time.Time
	failures     int
	backOffEvent time.Time

	hook    progress // postStart
	started bool     // startup probe passed and postStart done
	ready   bool
	probes  [numProbes]probe
	stop    *stop
	// changed says that the pod now names another image than the run was started from.
	changed  bool
	inherits *v1.ContainerStatus
}

// stop is the ending of a run under way.
type stop struct {
	killAt  time.Time
	sent    progress
	killing bool
	retryAt time.Time
}

// restartCount is what the API shows: the runs beyond the first.
func (c *container) restartCount() int32 { return int32(max(c.attempts-1, 0)) }

func (c *container) running() bool { return c.cur != nil && c.cur.Running && !c.stale }

// ended tells whether the last run ended in the sandbox the pod has now.
func (c *container) ended() bool { return c.cur != nil && !c.cur.Running && !c.stale && !c.starting }

func (c *container) succeeded() bool { return c.ended() && c.cur.ExitCode == 0 }

// inherit takes over what an earlier life of this process, or another record, said about the container.
func (c *container) inherit(s *v1.ContainerStatus) {
	c.inherits = s
	c.last = s.LastTerminationState.Terminated
	switch {
	case s.State.Terminated != nil:
		c.last = s.State.Terminated
		c.attempts = int(s.RestartCount) + 1
	case s.State.Running != nil || s.RestartCount > 0 || c.last != nil:
		c.attempts = int(s.RestartCount) + 1
	}
}

// adopt takes a run that the runtime still has as the current one.
func (c *container) adopt(r Run) {
	if c.cur != nil && c.cur.ID != r.ID {
		c.oldRuns = append(c.oldRuns, c.cur.ID)
		c.last = terminated(c.cur)
	}
	c.cur, c.stale = &r, false
	c.attempts = max(c.attempts, r.Attempt+1)
	c.hook = done
	if s := c.inherits; s != nil && s.ContainerID == ContainerIDPrefix+r.ID {
		c.ready = r.Running && s.Ready
		c.started = r.Running && s.Started != nil && *s.Started
		c.last = s.LastTerminationState.Terminated
		if r.Image == "" {
			c.cur.Image, c.cur.ImageID = s.Image, s.ImageID
		}
	}
	c.resetProbes()
}

// restartPolicy is the policy that holds for this container.
func (m *Machine) restartPolicy(c *container) v1.RestartPolicy {
	switch c.role {
	case sidecarRole:
		return v1.RestartPolicyAlways
	case ephemeralRole:
		return v1.RestartPolicyNever
	}
	if p := c.spec.RestartPolicy; p != nil {
		return v1.RestartPolicy(*p)
	}
	if c.role == initRole && m.pod.Spec.RestartPolicy == v1.RestartPolicyAlways {
		return v1.RestartPolicyOnFailure
	}
	if m.pod.Spec.RestartPolicy == "" {
		return v1.RestartPolicyAlways
	}
	return m.pod.Spec.RestartPolicy
}

// willRestart tells whether a run that ended with code is followed by another.
func (m *Machine) willRestart(c *container) bool {
	if c.changed {
		return true
	}
	code := int32(c.cur.ExitCode)
	for _, rule := range c.spec.RestartPolicyRules {
		if rule.Action == v1.ContainerRestartRuleActionRestart && matches(rule.ExitCodes, code) {
			return true
		}
	}
	switch m.restartPolicy(c) {
	case v1.RestartPolicyAlways:
		return true
	case v1.RestartPolicyOnFailure:
		return code != 0
	}
	return false
}

func matches(r *v1.ContainerRestartRuleOnExitCodes, code int32) bool {
	if r == nil {
		return false
	}
	in := false
	for _, v := range r.Values {
		in = in || v == code
	}
	return in == (r.Operator == v1.ContainerRestartRuleOnExitCodesOpIn)
}
