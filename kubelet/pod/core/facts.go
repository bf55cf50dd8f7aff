package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
)

// ContainerIDPrefix stands before every container ID in the API.
const ContainerIDPrefix = "nodeactor://"

// PodUpdated gives a newer version of the pod. Specs do not change but for what the API allows.
func (m *Machine) PodUpdated(pod *v1.Pod) {
	m.pod = pod
	for i := range pod.Spec.InitContainers {
		m.respec(&pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		m.respec(&pod.Spec.Containers[i])
	}
	m.addEphemeral()
}

func (m *Machine) respec(c *v1.Container) {
	have := m.byName[c.Name]
	if have == nil {
		return
	}
	if have.spec.Image != c.Image {
		have.image = image{}
		have.changed = have.running()
	}
	have.spec = c
}

// PodRemoved says that the API does not have the pod any more.
func (m *Machine) PodRemoved() { m.removed = true }

// PodRejected says that this node refuses the pod. It has no effect on a pod that has started.
func (m *Machine) PodRejected(r Rejection) {
	m.rejected = &r
	m.record(v1.EventTypeWarning, r.Reason, r.Message, "")
}

// SandboxFound says, right after New, what an earlier life of this process left: the sandbox (broken when it cannot be
// used any more) and the runs of its containers, oldest first.
func (m *Machine) SandboxFound(broken bool, createdAt time.Time, podIPs []string, runs map[string][]Run) {
	m.sandbox.progress, m.sandboxAt, m.podIPs, m.sandboxBroken = done, createdAt, podIPs, broken
	for name, rs := range runs {
		if c := m.byName[name]; c != nil {
			for _, r := range rs {
				c.adopt(r)
			}
		}
	}
}

// VolumesMounted says how mounting ended.
func (m *Machine) VolumesMounted(err error, now time.Time) {
	m.finish(&m.volumes, err, now, "FailedMount")
}

// SandboxCreated says how making sandbox and network ended.
func (m *Machine) SandboxCreated(podIPs []string, createdAt time.Time, err error, now time.Time) {
	m.finish(&m.sandbox, err, now, "FailedCreatePodSandBox")
	if err == nil {
		m.podIPs, m.sandboxAt = podIPs, createdAt
	}
}

// SandboxReset says how removing a broken sandbox ended.
func (m *Machine) SandboxReset(err error, now time.Time) {
	if err != nil {
		m.sandbox.finish(err, now)
		m.sandbox.progress = done // still there, still broken
		return
	}
	m.sandbox, m.sandboxBroken, m.podIPs = stage{}, false, nil
	for _, c := range m.containers {
		c.lost(now)
	}
}

// SandboxBroke says that the sandbox cannot be used any more, for instance because its namespaces are gone.
func (m *Machine) SandboxBroke() {
	if m.sandbox.progress == done && !m.sandboxBroken {
		m.sandboxBroken = true
		m.record(v1.EventTypeNormal, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.", "")
	}
}

func (m *Machine) finish(s *stage, err error, now time.Time, reason string) {
	if err != nil && !m.calledOff(err) {
		m.record(v1.EventTypeWarning, reason, err.Error(), "")
	}
	s.finish(err, now)
}

// calledOff tells whether work failed only because the pod is being ended: that is no failure to tell of.
func (m *Machine) calledOff(err error) bool { return m.Stopping() && errors.Is(err, context.Canceled) }

// lost forgets the sandbox's runs but for what status still shows.
func (c *container) lost(now time.Time) {
	if c.cur == nil {
		return
	}
	if c.cur.Running {
		c.cur.Running, c.cur.FinishedAt = false, now
		c.cur.ExitCode, c.cur.Reason, c.cur.Message = 137, "ContainerStatusUnknown", "The container could not be located when the pod was restarted."
	}
	c.stale, c.oldRuns = true, nil
	c.ended0()
}

// ended0 clears what holds only while a run lives.
func (c *container) ended0() {
	c.ready, c.started, c.hook, c.stop = false, false, idle, nil
	c.resetProbes()
}

// ImageEnsured says how making the image present ended. ref and id are what status shows; reason is the waiting reason
// of an error.
func (m *Machine) ImageEnsured(name, ref, id, reason string, err error, now time.Time) {
	c := m.byName[name]
	if c == nil {
		return
	}
	if err == nil {
		c.image = image{progress: done, ref: ref, id: id}
		return
	}
	i := &c.image
	i.failures++
	i.progress, i.failedAt, i.retryAt = idle, now, now.Add(pullDelay(i.failures))
	i.reason, i.message, i.backOff = reason, err.Error(), false
	if m.calledOff(err) {
		return
	}
	m.record(v1.EventTypeWarning, "Failed", fmt.Sprintf("Failed to pull image %q: %v", c.spec.Image, err), name)
	m.record(v1.EventTypeWarning, "Failed", "Error: "+reason, name)
}

// ContainerStarted says that run r of the container lives.
func (m *Machine) ContainerStarted(name string, r Run, now time.Time) {
	c := m.byName[name]
	if c == nil {
		return
	}
	c.starting = false
	c.setRun(r)
	c.image.progress, c.image.failures = idle, 0
	c.wait, c.failures = waiting{}, 0
	if c.spec.Lifecycle == nil || c.spec.Lifecycle.PostStart == nil {
		c.hook = done
	}
	m.record(v1.EventTypeNormal, "Created", fmt.Sprintf("Container created: %s", name), name)
	m.record(v1.EventTypeNormal, "Started", fmt.Sprintf("Container started: %s", name), name)
}

// setRun makes r the current run.
func (c *container) setRun(r Run) {
	if c.cur != nil {
		c.last = terminated(c.cur)
		if !c.stale {
			c.oldRuns = append(c.oldRuns, c.cur.ID)
		}
	}
	c.cur, c.stale = &r, false
	c.attempts = r.Attempt + 1
	c.changed = false
	c.ended0()
}

// StartFailure is an error that knows how the API names it.
type StartFailure struct {
	// Reason is the waiting reason, for instance CreateContainerConfigError.
	Reason string
	// Ran says that the run counts as an attempt that ended with ExitCode.
	Ran      bool
	ExitCode int
	Err      error
}

// Error is the cause's text.
func (f *StartFailure) Error() string { return f.Err.Error() }

// Unwrap returns Err.
func (f *StartFailure) Unwrap() error { return f.Err }

// ContainerStartFailed says that attempt of the container did not start. A *StartFailure in err says more.
func (m *Machine) ContainerStartFailed(name string, attempt int, err error, now time.Time) {
	c := m.byName[name]
	if c == nil {
		return
	}
	c.starting = false
	f := &StartFailure{Reason: "CreateContainerError", Err: err}
	errors.As(err, &f)
	if f.Ran {
		m.record(v1.EventTypeNormal, "Created", "Container created: "+name, name)
	}
	if !m.calledOff(err) {
		m.record(v1.EventTypeWarning, "Failed", "Error: "+f.Error(), name)
	}
	if f.Ran {
		c.setRun(Run{Attempt: attempt, CreatedAt: now, StartedAt: now, FinishedAt: now, ExitCode: f.ExitCode, Reason: "StartError",
			Message: f.Error(), Image: c.image.ref, ImageID: c.image.id})
		c.image.progress = idle
		c.wait = waiting{f.Reason, f.Error()}
		c.crashed(now)
		return
	}
	c.failures++
	c.wait = waiting{f.Reason, f.Error()}
	c.retryAt = now.Add(retryDelay(c.failures))
}

// PostStartDone says how the postStart hook of the run id ended.
func (m *Machine) PostStartDone(name, id string, err error, now time.Time) {
	c := m.byName[name]
	if c == nil || c.cur == nil || c.cur.ID != id {
		return
	}
	c.hook = done
	if err != nil {
		m.record(v1.EventTypeWarning, "FailedPostStartHook", fmt.Sprintf("PostStartHook failed: %v", err), name)
		m.endRun(c, m.grace(), "FailedPostStartHook", now)
	}
}

// ContainerExited says that a run has ended; r.Running is false. Saying it again has no effect.
func (m *Machine) ContainerExited(name string, r Run, now time.Time) {
	c := m.byName[name]
	if c == nil || c.cur == nil || c.cur.ID != r.ID || !c.cur.Running {
		return
	}
	r.Image, r.ImageID, r.Attempt = c.cur.Image, c.cur.ImageID, c.cur.Attempt
	if r.StartedAt.IsZero() {
		r.StartedAt = c.cur.StartedAt
	}
	r.Running = false
	c.cur = &r
	c.ended0()
	c.crashed(now)
}

// crashed sets when the next run may start.
func (c *container) crashed(now time.Time) {
	if c.cur.FinishedAt.Sub(c.cur.StartedAt) >= resetAfter {
		c.crashes = 0
	}
	c.crashes++
	c.retryAt = c.cur.FinishedAt.Add(crashDelay(c.crashes))
}

// StopSent says that the stop signal of the run id is on its way, or that there is nothing to signal any more.
func (m *Machine) StopSent(name, id string, preStop error) {
	c := m.byName[name]
	if preStop != nil {
		m.record(v1.EventTypeWarning, "FailedPreStopHook", fmt.Sprintf("PreStopHook failed: %v", preStop), name)
	}
	if c != nil && c.stop != nil && c.cur != nil && c.cur.ID == id {
		c.stop.sent = done
	}
}

// KillDone says how killing the run id ended; its exit is told by ContainerExited.
func (m *Machine) KillDone(name, id string, err error, now time.Time) {
	c := m.byName[name]
	if c == nil || c.stop == nil || c.cur == nil || c.cur.ID != id {
		return
	}
	c.stop.killing, c.stop.retryAt = false, now.Add(killRetry)
	if err != nil {
		m.record(v1.EventTypeWarning, "FailedKillPod", fmt.Sprintf("error killing container %s: %v", name, err), name)
	}
}

// TornDown says how removing sandbox, network and volumes ended.
func (m *Machine) TornDown(err error, now time.Time) {
	m.finish(&m.teardown, err, now, "FailedKillPod")
	if err == nil {
		m.sandbox, m.volumes, m.sandboxBroken = stage{}, stage{}, false
	}
}

// Finalized says how deleting the pod from the API and the node's records ended.
func (m *Machine) Finalized(err error, now time.Time) {
	m.finalize.finish(err, now)
	m.finalized = err == nil
}

// Runs are the runs the machine takes as living, by container.
func (m *Machine) Runs() map[string]Run {
	out := map[string]Run{}
	for _, c := range m.containers {
		if c.running() {
			out[c.spec.Name] = *c.cur
		}
	}
	return out
}

// RunFound says that a run lives that the machine did not report as started. It returns whether the machine takes it.
func (m *Machine) RunFound(name string, r Run) bool {
	c := m.byName[name]
	if c == nil || c.starting || c.running() || r.Attempt < c.attempts {
		return false
	}
	c.adopt(r)
	return true
}
