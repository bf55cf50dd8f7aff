package core

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Status is what the API shall say about the pod now. It belongs to the caller. Conditions and fields that others own
// (PodScheduled, custom conditions, nominatedNodeName, ...) are those of the pod as last given.
func (m *Machine) Status(now time.Time) v1.PodStatus {
	s := *m.pod.Status.DeepCopy()
	s.ObservedGeneration = m.pod.Generation
	s.Phase = m.phase()
	s.Reason, s.Message = m.reason(s)
	s.QOSClass = m.qos
	start := metav1.NewTime(m.startTime.Truncate(time.Second))
	s.StartTime = &start
	m.addresses(&s)
	s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses = nil, nil, nil
	for _, c := range m.containers {
		if m.rejected != nil && c.cur == nil && c.inherits == nil {
			continue // nothing of it will ever be made
		}
		cs := m.containerStatus(c, now)
		switch c.role {
		case mainRole:
			s.ContainerStatuses = append(s.ContainerStatuses, cs)
		case ephemeralRole:
			s.EphemeralContainerStatuses = append(s.EphemeralContainerStatuses, cs)
		default:
			s.InitContainerStatuses = append(s.InitContainerStatuses, cs)
		}
	}
	s.Conditions = m.conditions(s, now)
	m.lastWritten = s
	return *s.DeepCopy()
}

func (m *Machine) reason(s v1.PodStatus) (string, string) {
	switch {
	case m.rejected != nil:
		return m.rejected.Reason, m.rejected.Message
	case m.deadline:
		return "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
	case m.terminal:
		return s.Reason, s.Message
	}
	return "", ""
}

func (m *Machine) addresses(s *v1.PodStatus) {
	s.HostIP, s.HostIPs, s.PodIP, s.PodIPs = "", nil, "", nil
	for _, ip := range m.hostIPs {
		s.HostIPs = append(s.HostIPs, v1.HostIP{IP: ip})
	}
	if len(m.hostIPs) > 0 {
		s.HostIP = m.hostIPs[0]
	}
	ips := m.podIPs
	if len(ips) == 0 && m.terminal {
		s.PodIP, s.PodIPs = m.lastWritten.PodIP, m.lastWritten.PodIPs
		return
	}
	for _, ip := range ips {
		s.PodIPs = append(s.PodIPs, v1.PodIP{IP: ip})
	}
	if len(ips) > 0 {
		s.PodIP = ips[0]
	}
}

// containerStatus is the status of one container.
func (m *Machine) containerStatus(c *container, now time.Time) v1.ContainerStatus {
	if c.cur == nil && c.inherits != nil && (m.terminal || m.rejected != nil) && c.inherits.State.Terminated != nil {
		return *c.inherits.DeepCopy()
	}
	s := v1.ContainerStatus{Name: c.spec.Name, Image: c.spec.Image, RestartCount: c.restartCount(), State: m.state(c)}
	started := c.running() && c.started
	s.Started = &started
	s.Ready = m.isReady(c)
	if t := m.lastState(c, s.State); t != nil {
		s.LastTerminationState.Terminated = t
	}
	if c.cur != nil {
		if c.cur.ID != "" {
			s.ContainerID = ContainerIDPrefix + c.cur.ID
		}
		s.ImageID = c.cur.ImageID
		if c.cur.Image != "" {
			s.Image = c.cur.Image
		}
	}
	if c.running() {
		s.AllocatedResources = c.spec.Resources.Requests
		s.Resources = c.spec.Resources.DeepCopy()
	}
	for _, vm := range c.spec.VolumeMounts {
		s.VolumeMounts = append(s.VolumeMounts, mountStatus(vm))
	}
	return s
}

func mountStatus(vm v1.VolumeMount) v1.VolumeMountStatus {
	s := v1.VolumeMountStatus{Name: vm.Name, MountPath: vm.MountPath, ReadOnly: vm.ReadOnly}
	if vm.ReadOnly {
		mode := v1.RecursiveReadOnlyDisabled
		if vm.RecursiveReadOnly != nil && *vm.RecursiveReadOnly != v1.RecursiveReadOnlyDisabled {
			mode = v1.RecursiveReadOnlyEnabled
		}
		s.RecursiveReadOnly = &mode
	}
	return s
}

func (m *Machine) isReady(c *container) bool {
	if c.role == initRole {
		return c.cur != nil && !c.cur.Running && c.cur.ExitCode == 0 && !c.stale
	}
	return c.role != ephemeralRole && c.running() && c.started && c.ready
}

// state is waiting, running or terminated, with the reasons users know.
func (m *Machine) state(c *container) v1.ContainerState {
	switch {
	case c.running():
		return v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: seconds(c.cur.StartedAt)}}
	case c.cur != nil && (m.Stopping() || c.ended() && !m.willRestart(c)):
		return v1.ContainerState{Terminated: terminated(c.cur)}
	case m.Stopping() && c.last != nil:
		return v1.ContainerState{Terminated: c.last.DeepCopy()}
	case c.wait.reason != "" && c.crashes < 2:
		return waits(c.wait.reason, c.wait.message)
	case c.image.reason != "" && c.image.progress != done:
		return waits(c.image.reason, c.image.message)
	case c.ended() && c.crashes > 1:
		return waits("CrashLoopBackOff", m.crashMessage(c))
	case c.ended() && !c.starting && c.image.progress != underway:
		return v1.ContainerState{Terminated: terminated(c.cur)}
	case c.wait.reason != "":
		return waits(c.wait.reason, c.wait.message)
	case c.role != initRole && len(m.pod.Spec.InitContainers) > 0 && !m.initialized(), c.role == initRole && c != m.firstInit():
		return waits("PodInitializing", "")
	}
	return waits("ContainerCreating", "")
}

func (m *Machine) firstInit() *container { return m.containers[0] }

func (m *Machine) crashMessage(c *container) string {
	return "back-off " + crashDelay(c.crashes).String() + " restarting failed container=" + c.spec.Name + " pod=" + m.pod.Name + "_" +
		m.pod.Namespace + "(" + string(m.pod.UID) + ")"
}

func waits(reason, message string) v1.ContainerState {
	return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// lastState is the end of the run before the one state speaks of.
func (m *Machine) lastState(c *container, state v1.ContainerState) *v1.ContainerStateTerminated {
	if state.Terminated == nil && c.cur != nil && !c.running() {
		return terminated(c.cur)
	}
	if state.Terminated != nil && c.cur == nil {
		return nil
	}
	return c.last.DeepCopy()
}

// terminated is the state of a run that has ended.
func terminated(r *Run) *v1.ContainerStateTerminated {
	t := &v1.ContainerStateTerminated{ExitCode: int32(r.ExitCode), Reason: r.Reason, Message: r.Message,
		StartedAt: seconds(r.StartedAt), FinishedAt: seconds(r.FinishedAt)}
	if r.ID != "" {
		t.ContainerID = ContainerIDPrefix + r.ID
	}
	if t.Reason == "" {
		t.Reason = "Error"
		if r.ExitCode == 0 {
			t.Reason = "Completed"
		}
	}
	return t
}

// seconds is t as the API stores it, so that what was written compares equal to what is read.
func seconds(t time.Time) metav1.Time {
	if t.IsZero() {
		return metav1.Time{}
	}
	return metav1.NewTime(t.Truncate(time.Second))
}
