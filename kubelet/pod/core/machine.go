package core

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// progress is how far one stage of the pod has come.
type progress int

const (
	idle progress = iota
	underway
	done
)

// stage is something the pod needs once: its volumes, its sandbox.
type stage struct {
	progress progress
	failures int
	err      string
	retryAt  time.Time
}

func (s *stage) due(now time.Time) bool { return s.progress == idle && !now.Before(s.retryAt) }

func (s *stage) finish(err error, now time.Time) {
	if err == nil {
		*s = stage{progress: done}
		return
	}
	s.progress, s.err = idle, err.Error()
	s.failures++
	s.retryAt = now.Add(retryDelay(s.failures))
}

// Machine is the state of one pod on this node. Build it with [New].
type Machine struct {
	pod     *v1.Pod
	hostIPs []string

	volumes, sandbox, teardown, finalize stage

	sandboxBroken bool
	sandboxAt     time.Time
	podIPs        []string

	containers []*container // init containers in order, then the others
	byName     map[string]*container

	removed     bool // the API no longer has the pod
	rejected    *Rejection
	terminal    bool // all containers ended for good
	deadline    bool // activeDeadlineSeconds has passed
	stopSince   time.Time
	startTime   time.Time
	finalized   bool
	qos         v1.PodQOSClass
	pending     []Action // Events recorded since the last Step
	lastWritten v1.PodStatus
}

// Rejection is why this node refuses a pod; the pod becomes Failed with it.
type Rejection struct{ Reason, Message string }

// New builds the machine of a pod that was just assigned or that was found at start. The status in pod (from the API or
// from the node's records) gives restart counts, last states and, for runs that still live, readiness. hostIPs are
// this node's addresses, primary first.
func New(pod *v1.Pod, hostIPs []string, now time.Time) *Machine {
	m := &Machine{pod: pod, hostIPs: hostIPs, byName: map[string]*container{}, startTime: now, lastWritten: *pod.Status.DeepCopy()}
	if pod.Status.StartTime != nil {
		m.startTime = pod.Status.StartTime.Time
	}
	m.qos = pod.Status.QOSClass
	if m.qos == "" {
		m.qos = QOS(pod)
	}
	m.addContainers()
	if pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
		m.terminal = true
	}
	return m
}

func (m *Machine) addContainers() {
	for i := range m.pod.Spec.InitContainers {
		c := &m.pod.Spec.InitContainers[i]
		r := initRole
		if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			r = sidecarRole
		}
		m.add(c, r, m.pod.Status.InitContainerStatuses)
	}
	for i := range m.pod.Spec.Containers {
		m.add(&m.pod.Spec.Containers[i], mainRole, m.pod.Status.ContainerStatuses)
	}
	m.addEphemeral()
}

// addEphemeral takes in the ephemeral containers that are new.
func (m *Machine) addEphemeral() {
	for i := range m.pod.Spec.EphemeralContainers {
		c := (*v1.Container)(&m.pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		if m.byName[c.Name] == nil {
			m.add(c, ephemeralRole, m.pod.Status.EphemeralContainerStatuses)
		}
	}
}

func (m *Machine) add(spec *v1.Container, r role, before []v1.ContainerStatus) {
	c := &container{spec: spec, role: r}
	for i := range before {
		if before[i].Name == spec.Name {
			c.inherit(&before[i])
		}
	}
	m.containers = append(m.containers, c)
	m.byName[spec.Name] = c
}

// Pod is the pod as last given; do not change it.
func (m *Machine) Pod() *v1.Pod { return m.pod }

// PodIPs are the pod's addresses, empty before its sandbox has them.
func (m *Machine) PodIPs() []string { return m.podIPs }

// QOSClass is the pod's quality-of-service class.
func (m *Machine) QOSClass() v1.PodQOSClass { return m.qos }

// Stopping tells whether the pod's containers are being ended for good.
func (m *Machine) Stopping() bool {
	return m.leaving() || m.terminal || m.deadline || m.rejected != nil
}

// Done tells whether nothing of the pod is left, here and in the API.
func (m *Machine) Done() bool { return m.finalized }

// leaving tells whether the pod shall disappear altogether.
func (m *Machine) leaving() bool { return m.removed || m.pod.DeletionTimestamp != nil }

func (m *Machine) record(eventType, reason, message, container string) {
	m.pending = append(m.pending, Action{Kind: Record, Type: eventType, Reason: reason, Message: message, Container: container})
}
