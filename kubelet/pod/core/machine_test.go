package core

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var epoch = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// play drives a machine and answers its actions, unless told to leave them open.
type play struct {
	t     testing.TB
	m     *Machine
	now   time.Time
	log   []string // actions but Events
	notes []string // Events
	open  map[Kind]bool
	asked []Action
	wake  time.Time
	exits map[string]int // exit code by container that a run ends with at once
	live  map[string]Run
}

func newPlay(t testing.TB, p *v1.Pod) *play {
	return &play{t: t, m: New(p, []string{"192.0.2.1"}, epoch), now: epoch, open: map[Kind]bool{}, exits: map[string]int{}, live: map[string]Run{}}
}

func pod(policy v1.RestartPolicy, containers ...string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u", Generation: 3}, Spec: v1.PodSpec{RestartPolicy: policy}}
	always := v1.ContainerRestartPolicyAlways
	for _, c := range containers {
		name, init := strings.CutPrefix(c, "init:")
		name, side := strings.CutPrefix(name, "side:")
		spec := v1.Container{Name: name, Image: "img"}
		if side {
			spec.RestartPolicy = &always
		}
		if init || side {
			p.Spec.InitContainers = append(p.Spec.InitContainers, spec)
		} else {
			p.Spec.Containers = append(p.Spec.Containers, spec)
		}
	}
	return p
}

// settle steps and answers until the machine wants nothing more.
func (p *play) settle() {
	for range 1000 {
		actions, wake := p.m.Step(p.now)
		p.wake = wake
		if len(actions) == 0 {
			return
		}
		for _, a := range actions {
			p.do(a)
		}
	}
	p.t.Fatalf("the machine never rests: %s\n%s", p.m.describe(), strings.Join(p.log, "\n"))
}

func (p *play) do(a Action) {
	if a.Kind == Record {
		p.notes = append(p.notes, a.Reason)
		return
	}
	p.log = append(p.log, strings.TrimSpace(fmt.Sprintf("%s %s", a.Kind, a.Container)))
	if p.open[a.Kind] {
		p.asked = append(p.asked, a)
		return
	}
	p.answer(a)
}

func (p *play) answer(a Action) {
	switch a.Kind {
	case MountVolumes:
		p.m.VolumesMounted(nil, p.now)
	case CreateSandbox:
		p.m.SandboxCreated([]string{"10.0.0.9"}, p.now, nil, p.now)
	case ResetSandbox:
		p.live = map[string]Run{}
		p.m.SandboxReset(nil, p.now)
	case EnsureImage:
		p.m.ImageEnsured(a.Container, "img", "img@x", "", nil, p.now)
	case StartContainer:
		r := Run{ID: fmt.Sprintf("%s-%d", a.Container, a.Attempt), Attempt: a.Attempt, Running: true, CreatedAt: p.now, StartedAt: p.now, Image: "img", ImageID: "img@x"}
		p.live[a.Container] = r
		p.m.ContainerStarted(a.Container, r, p.now)
		if code, ok := p.exits[a.Container]; ok {
			p.exit(a.Container, code)
		}
	case PostStart:
		p.m.PostStartDone(a.Container, a.ID, nil, p.now)
	case StopContainer:
		p.m.StopSent(a.Container, a.ID, nil)
	case KillContainer:
		p.m.KillDone(a.Container, a.ID, nil, p.now)
		p.exit(a.Container, 137)
	case Probe:
		p.m.ProbeDone(a.Container, a.ID, a.Probe, Success, "", p.now)
	case Teardown:
		p.live = map[string]Run{}
		p.m.TornDown(nil, p.now)
	case Finalize:
		p.m.Finalized(nil, p.now)
	}
}

func (p *play) exit(name string, code int) {
	r, ok := p.live[name]
	if !ok {
		return
	}
	delete(p.live, name)
	r.Running, r.ExitCode, r.FinishedAt = false, code, p.now
	p.m.ContainerExited(name, r, p.now)
}

func (p *play) advance(d time.Duration) {
	end := p.now.Add(d)
	for !p.wake.IsZero() && !p.wake.After(end) {
		p.now = p.wake
		p.settle()
	}
	p.now = end
	p.settle()
}

func (p *play) status() v1.PodStatus { return p.m.Status(p.now) }

func (p *play) took(want ...string) {
	p.t.Helper()
	if len(want) == 0 && len(p.log) == 0 {
		return
	}
	if !reflect.DeepEqual(p.log, want) {
		p.t.Errorf("actions:\n%s\nwant:\n%s", strings.Join(p.log, "\n"), strings.Join(want, "\n"))
	}
	p.log = nil
}

func (p *play) phase(want v1.PodPhase) {
	p.t.Helper()
	if got := p.status().Phase; got != want {
		p.t.Errorf("phase %s, want %s", got, want)
	}
}

func (p *play) waiting(name string) string {
	s := p.status()
	for _, list := range [][]v1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for _, c := range list {
			if c.Name == name && c.State.Waiting != nil {
				return c.State.Waiting.Reason
			}
		}
	}
	return ""
}

func cond(s v1.PodStatus, t v1.PodConditionType) v1.ConditionStatus {
	for _, c := range s.Conditions {
		if c.Type == t {
			return c.Status
		}
	}
	return ""
}

func TestStartOrder(t *testing.T) {
	p := newPlay(t, pod(v1.RestartPolicyAlways, "init:one", "side:two", "init:three", "main"))
	p.exits["one"], p.exits["three"] = 0, 0
	p.phase(v1.PodPending)
	if got := p.waiting("main"); got != "PodInitializing" {
		t.Errorf("main waits for %q", got)
	}
	p.settle()
	p.took("CreateSandbox", "MountVolumes", "EnsureImage one", "StartContainer one", "EnsureImage two", "StartContainer two",
		"EnsureImage three", "StartContainer three", "EnsureImage main", "StartContainer main")
	s := p.status()
	for _, c := range []v1.PodConditionType{v1.PodReady, v1.ContainersReady, v1.PodInitialized, v1.PodReadyToStartContainers, v1.PodScheduled} {
		if cond(s, c) != v1.ConditionTrue {
			t.Errorf("%s is %s", c, cond(s, c))
		}
	}
	if s.Phase != v1.PodRunning || s.PodIP != "10.0.0.9" || s.HostIP != "192.0.2.1" || s.ObservedGeneration != 3 {
		t.Errorf("%+v", s)
	}
}

func TestEndOrder(t *testing.T) {
	p := newPlay(t, pod(v1.RestartPolicyAlways, "side:a", "side:b", "x", "y"))
	p.settle()
	p.log = nil
	now := metav1.NewTime(p.now)
	gone := p.m.Pod().DeepCopy()
	gone.DeletionTimestamp = &now
	p.m.PodUpdated(gone)
	p.settle()
	p.took("StopContainer x", "StopContainer y")
	p.exit("x", 0)
	p.settle()
	p.took()
	p.exit("y", 0)
	p.settle()
	p.took("StopContainer b")
	p.exit("b", 0)
	p.settle()
	p.took("StopContainer a")
	p.exit("a", 0)
	p.settle()
	p.took("Teardown", "Finalize")
	p.phase(v1.PodSucceeded)
	if !p.m.Done() {
		t.Error("not done")
	}
}

func TestGraceEndsWithKill(t *testing.T) {
	p := newPlay(t, pod(v1.RestartPolicyAlways, "x"))
	p.settle()
	p.log = nil
	p.m.PodRemoved()
	p.settle()
	p.took("StopContainer x")
	p.advance(29 * time.Second)
	p.took()
	p.advance(time.Second)
	p.took("KillContainer x", "Teardown", "Finalize")
	p.phase(v1.PodFailed)
}

func TestShortenedGrace(t *testing.T) {
	p := newPlay(t, pod(v1.RestartPolicyAlways, "x"))
	p.settle()
	thirty, two := int64(30), int64(2)
	at := metav1.NewTime(p.now)
	d := p.m.Pod().DeepCopy()
	d.DeletionTimestamp, d.DeletionGracePeriodSeconds = &at, &thirty
	p.m.PodUpdated(d)
	p.settle()
	d = d.DeepCopy()
	d.DeletionGracePeriodSeconds = &two
	p.m.PodUpdated(d)
	p.settle()
	p.advance(2 * time.Second)
	if !p.m.Done() {
		t.Error("a shortened grace period has no effect")
	}
}

// TestCrashBackOff checks the delays: at once, then 10 s doubling to 5 min, anew after 10 min of running.
func TestCrashBackOff(t *testing.T) {
	p := newPlay(t, pod(v1.RestartPolicyAlways, "x"))
	p.settle()
	for i, want := range []time.Duration{0, 10, 20, 40, 80, 160, 300, 300} {
		p.now = p.now.Add(time.Second)
		p.exit("x", 1)
		p.settle()
		if got := p.status().ContainerStatuses[0].RestartCount; want > 0 && (got != int32(i) || p.waiting("x") != "CrashLoopBackOff") {
			t.Errorf("after crash %d: %d restarts, waiting %q", i+1, got, p.waiting("x"))
		}
		if want > 0 {
			p.advance(want*time.Second - time.Millisecond)
			if len(p.live) > 0 {
				t.Errorf("crash %d: started before %d s", i+1, want)
			}
			p.advance(time.Millisecond)
		}
		if len(p.live) == 0 {
			t.Fatalf("crash %d: not started after %d s", i+1, want)
		}
	}
	p.advance(10 * time.Minute)
	p.exit("x", 1)
	p.settle()
	if len(p.live) == 0 {
		t.Error("the back-off did not start anew")
	}
	if !strings.Contains(strings.Join(p.notes, " "), "BackOff") {
		t.Error("no BackOff Event")
	}
}

func TestRestartPolicies(t *testing.T) {
	for _, c := range []struct {
		policy v1.RestartPolicy
		code   int
		phase  v1.PodPhase
	}{
		{v1.RestartPolicyAlways, 0, v1.PodRunning}, {v1.RestartPolicyAlways, 1, v1.PodRunning},
		{v1.RestartPolicyOnFailure, 0, v1.PodSucceeded}, {v1.RestartPolicyOnFailure, 1, v1.PodRunning},
		{v1.RestartPolicyNever, 0, v1.PodSucceeded}, {v1.RestartPolicyNever, 1, v1.PodFailed},
	} {
		p := newPlay(t, pod(c.policy, "x"))
		p.settle()
		p.exit("x", c.code)
		p.settle()
		if got := p.status().Phase; got != c.phase {
			t.Errorf("%s, exit %d: %s, want %s", c.policy, c.code, got, c.phase)
		}
		if over := c.phase != v1.PodRunning; over != (p.log[len(p.log)-1] == "Teardown") {
			t.Errorf("%s, exit %d: %v", c.policy, c.code, p.log)
		}
	}
}

func TestContainerRestartRules(t *testing.T) {
	spec := pod(v1.RestartPolicyNever, "x")
	never := v1.ContainerRestartPolicyNever
	spec.Spec.Containers[0].RestartPolicy = &never
	spec.Spec.Containers[0].RestartPolicyRules = []v1.ContainerRestartRule{{Action: v1.ContainerRestartRuleActionRestart,
		ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}}}}
	p := newPlay(t, spec)
	p.settle()
	p.exit("x", 42)
	p.settle()
	if len(p.live) != 1 {
		t.Error("code 42 was not restarted")
	}
	p.exit("x", 1)
	p.settle()
	p.phase(v1.PodFailed)
}

func TestInitFailure(t *testing.T) {
	p := newPlay(t, pod(v1.RestartPolicyNever, "init:i", "x"))
	p.exits["i"] = 2
	p.settle()
	p.phase(v1.PodFailed)
	p = newPlay(t, pod(v1.RestartPolicyAlways, "init:i", "x"))
	p.settle()
	p.exit("i", 2)
	p.settle()
	p.exit("i", 2)
	p.settle()
	p.phase(v1.PodPending)
	if p.waiting("i") != "CrashLoopBackOff" || p.waiting("x") != "PodInitializing" {
		t.Errorf("waiting: %q, %q", p.waiting("i"), p.waiting("x"))
	}
	p.exits["i"] = 0
	p.advance(10 * time.Second)
	p.phase(v1.PodRunning)
}

func TestImagePullBackOff(t *testing.T) {
	p := newPlay(t, pod(v1.RestartPolicyAlways, "x"))
	p.open[EnsureImage] = true
	fail := func() {
		p.t.Helper()
		if len(p.asked) != 1 {
			t.Fatalf("asked for %d images", len(p.asked))
		}
		p.asked = nil
		p.m.ImageEnsured("x", "", "", "ErrImagePull", errors.New("not found"), p.now)
		p.settle()
	}
	p.settle()
	for i, want := range []time.Duration{10, 20, 40, 80, 160, 300, 300} {
		fail()
		if p.waiting("x") != "ErrImagePull" {
			t.Errorf("failure %d: %q", i+1, p.waiting("x"))
		}
		p.advance(errPullShown)
		if p.waiting("x") != "ImagePullBackOff" {
			t.Errorf("failure %d, later: %q", i+1, p.waiting("x"))
		}
		p.advance(want*time.Second - errPullShown - time.Millisecond)
		if len(p.asked) != 0 {
			t.Errorf("failure %d: pulled again before %d s", i+1, want)
		}
		p.advance(time.Millisecond)
	}
	p.asked = nil
	p.open[EnsureImage] = false
	p.m.ImageEnsured("x", "img", "id", "", nil, p.now)
	p.settle()
	p.phase(v1.PodRunning)
}

func TestStartErrors(t *testing.T) {
	p := newPlay(t, pod(v1.RestartPolicyAlways, "x"))
	p.open[StartContainer] = true
	p.settle()
	p.asked = nil
	p.m.ContainerStartFailed("x", 0, &StartFailure{Reason: "CreateContainerConfigError", Err: errors.New("no such key")}, p.now)
	p.settle()
	if p.waiting("x") != "CreateContainerConfigError" || p.status().ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("%+v", p.status().ContainerStatuses[0])
	}
	p.advance(time.Second)
	if len(p.asked) != 1 || p.asked[0].Attempt != 0 {
		t.Fatalf("asked %+v", p.asked)
	}
	for i := range 2 {
		p.asked = nil
		p.m.ContainerStartFailed("x", i, &StartFailure{Reason: "RunContainerError", Ran: true, ExitCode: 128, Err: errors.New("no such file")}, p.now)
		p.settle()
	}
	s := p.status().ContainerStatuses[0]
	if s.State.Waiting == nil || s.State.Waiting.Reason != "CrashLoopBackOff" || s.LastTerminationState.Terminated.Reason != "StartError" {
		t.Errorf("%+v", s)
	}
}

// What fails because the pod is being deleted is not told as a failure.
func TestCalledOffWorkIsNoFailure(t *testing.T) {
	cause := fmt.Errorf("cannot start container: %w", context.Canceled)
	for _, deleted := range []bool{false, true} {
		m := New(pod(v1.RestartPolicyAlways, "x"), nil, time.Unix(1000, 0))
		if deleted {
			m.PodRemoved()
		}
		now := time.Unix(1000, 0)
		m.VolumesMounted(cause, now)
		m.ImageEnsured("x", "", "", "ErrImagePull", cause, now)
		m.ContainerStartFailed("x", 0, &StartFailure{Reason: "CreateContainerError", Err: cause}, now)
		warnings := 0
		for _, a := range m.pending {
			if a.Kind == Record && a.Type == v1.EventTypeWarning {
				warnings++
			}
		}
		if (warnings == 0) != deleted {
			t.Errorf("deleted %t: %d warnings", deleted, warnings)
		}
	}
}

// Each attempt that fails is told; the sender counts repetitions up.
func TestEachFailedMountIsTold(t *testing.T) {
	m := New(pod(v1.RestartPolicyAlways, "x"), nil, time.Unix(1000, 0))
	for i := range 3 {
		m.VolumesMounted(errors.New("no such secret"), time.Unix(1000+int64(i), 0))
	}
	if got := len(m.pending); got != 3 {
		t.Errorf("%d Events of 3 attempts", got)
	}
}

func TestProbes(t *testing.T) {
	spec := pod(v1.RestartPolicyAlways, "x")
	h := v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{}}
	spec.Spec.Containers[0].StartupProbe = &v1.Probe{ProbeHandler: h, PeriodSeconds: 1, FailureThreshold: 3, InitialDelaySeconds: 5}
	spec.Spec.Containers[0].ReadinessProbe = &v1.Probe{ProbeHandler: h, PeriodSeconds: 2, SuccessThreshold: 2, FailureThreshold: 2}
	spec.Spec.Containers[0].LivenessProbe = &v1.Probe{ProbeHandler: h, PeriodSeconds: 3, FailureThreshold: 2}
	p := newPlay(t, spec)
	p.open[Probe] = true
	result := map[ProbeKind]Outcome{Startup: Failure, Readiness: Success, Liveness: Success}
	second := func(n int) {
		for range n {
			p.advance(time.Second)
			for len(p.asked) > 0 {
				a := p.asked[0]
				p.asked = p.asked[1:]
				p.m.ProbeDone(a.Container, a.ID, a.Probe, result[a.Probe], "", p.now)
				p.settle()
			}
		}
	}
	started := func() bool { return *p.status().ContainerStatuses[0].Started }
	ready := func() bool { return p.status().ContainerStatuses[0].Ready }
	p.settle()
	second(4)
	if len(p.asked) > 0 || started() {
		t.Error("probed before the initial delay")
	}
	result[Startup] = Success
	second(1)
	if !started() || ready() {
		t.Errorf("started %t, ready %t", started(), ready())
	}
	second(2)
	if !ready() {
		t.Error("not ready after two successes")
	}
	result[Readiness] = Failure
	second(2)
	if !ready() {
		t.Error("one failure made it unready")
	}
	second(2)
	if ready() {
		t.Error("still ready after two failures")
	}
	p.log, result[Liveness] = nil, Failure
	second(6)
	if !strings.Contains(strings.Join(p.log, ","), "StopContainer x") {
		t.Errorf("not stopped by its liveness probe: %v", p.log)
	}
	p.exit("x", 0)
	p.settle()
	if p.status().ContainerStatuses[0].RestartCount != 1 || started() {
		t.Errorf("%+v", p.status().ContainerStatuses[0])
	}
}

func TestReadinessGate(t *testing.T) {
	spec := pod(v1.RestartPolicyAlways, "x")
	spec.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "gate"}}
	p := newPlay(t, spec)
	p.settle()
	if s := p.status(); cond(s, v1.PodReady) != v1.ConditionFalse || cond(s, v1.ContainersReady) != v1.ConditionTrue {
		t.Errorf("%+v", s.Conditions)
	}
	next := spec.DeepCopy()
	next.Status.Conditions = []v1.PodCondition{{Type: "gate", Status: v1.ConditionTrue}}
	p.m.PodUpdated(next)
	if s := p.status(); cond(s, v1.PodReady) != v1.ConditionTrue || cond(s, "gate") != v1.ConditionTrue {
		t.Errorf("%+v", s.Conditions)
	}
}

func TestActiveDeadline(t *testing.T) {
	spec := pod(v1.RestartPolicyAlways, "x")
	five := int64(5)
	spec.Spec.ActiveDeadlineSeconds = &five
	p := newPlay(t, spec)
	p.settle()
	p.advance(5 * time.Second)
	s := p.status()
	if s.Phase != v1.PodFailed || s.Reason != "DeadlineExceeded" {
		t.Errorf("%s %s", s.Phase, s.Reason)
	}
	p.advance(time.Minute)
	if p.log[len(p.log)-1] != "Teardown" || p.m.Done() {
		t.Errorf("%v", p.log)
	}
}

func TestRejected(t *testing.T) {
	p := newPlay(t, pod(v1.RestartPolicyAlways, "x"))
	p.m.PodRejected(Rejection{"OutOfcpu", "too much"})
	p.settle()
	p.took("Teardown")
	if s := p.status(); s.Phase != v1.PodFailed || s.Reason != "OutOfcpu" || s.Message != "too much" {
		t.Errorf("%+v", s)
	}
}

func TestBrokenSandboxIsMadeAnew(t *testing.T) {
	p := newPlay(t, pod(v1.RestartPolicyAlways, "init:i", "x"))
	p.exits["i"] = 0
	p.settle()
	p.log = nil
	p.m.SandboxBroke()
	p.settle()
	p.took("ResetSandbox", "CreateSandbox", "EnsureImage i", "StartContainer i", "EnsureImage x", "StartContainer x")
	s := p.status()
	if c := s.ContainerStatuses[0]; c.RestartCount != 1 || c.LastTerminationState.Terminated == nil || s.Phase != v1.PodRunning {
		t.Errorf("%+v", c)
	}
}

// TestAdoptionChangesNothing gives a new machine what the old one said and what runs: nothing is done, nothing changes.
func TestAdoptionChangesNothing(t *testing.T) {
	spec := pod(v1.RestartPolicyAlways, "init:i", "x", "y")
	spec.Spec.Containers[1].ReadinessProbe = &v1.Probe{ProbeHandler: v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{}}, PeriodSeconds: 10}
	p := newPlay(t, spec)
	p.exits["i"] = 0
	p.settle()
	p.exit("x", 1)
	p.settle()
	before := p.status()
	spec = spec.DeepCopy()
	spec.Status = before
	m := New(spec, []string{"192.0.2.1"}, p.now.Add(time.Hour))
	runs := map[string][]Run{"x": {{ID: "x-0", ExitCode: 1, StartedAt: p.now, FinishedAt: p.now}, p.live["x"]}, "y": {p.live["y"]},
		"i": {{ID: "i-0", StartedAt: p.now, FinishedAt: p.now, Image: "img", ImageID: "img@x"}}}
	m.SandboxFound(false, epoch, []string{"10.0.0.9"}, runs)
	for range 3 {
		actions, _ := m.Step(p.now.Add(time.Second))
		for _, a := range actions {
			if a.Kind != MountVolumes && a.Kind != Probe {
				t.Errorf("adoption did %s %s", a.Kind, a.Container)
			}
		}
	}
	m.VolumesMounted(nil, p.now)
	got := m.Status(p.now.Add(time.Hour))
	if !reflect.DeepEqual(got, before) {
		t.Errorf("status changed:\n%+v\n%+v", before, got)
	}
}

func TestTerminalPodFoundAtStartIsLeftAlone(t *testing.T) {
	p := newPlay(t, pod(v1.RestartPolicyNever, "x"))
	p.settle()
	p.exit("x", 3)
	p.settle()
	spec := p.m.Pod().DeepCopy()
	spec.Status = p.status()
	q := newPlay(t, spec)
	q.settle()
	q.took("Teardown")
	if got := q.status(); !reflect.DeepEqual(got, spec.Status) {
		t.Errorf("status changed:\n%+v\n%+v", spec.Status, got)
	}
}

func TestAnotherImageRestartsTheContainer(t *testing.T) {
	p := newPlay(t, pod(v1.RestartPolicyNever, "x"))
	p.settle()
	next := p.m.Pod().DeepCopy()
	next.Spec.Containers[0].Image = "other"
	p.m.PodUpdated(next)
	p.log = nil
	p.settle()
	p.took("StopContainer x")
	p.exit("x", 143)
	p.settle()
	p.took("EnsureImage x", "StartContainer x")
	p.phase(v1.PodRunning)
	p.m.PodUpdated(next.DeepCopy())
	p.settle()
	p.took()
}

func TestEphemeralContainerRunsOnceAndCountsForNothing(t *testing.T) {
	p := newPlay(t, pod(v1.RestartPolicyAlways, "x"))
	p.settle()
	next := p.m.Pod().DeepCopy()
	next.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug", Image: "img"}}}
	p.m.PodUpdated(next)
	p.log = nil
	p.settle()
	p.took("EnsureImage debug", "StartContainer debug")
	p.exit("debug", 1)
	p.settle()
	p.took()
	s := p.status()
	if c := s.EphemeralContainerStatuses[0]; c.State.Terminated == nil || c.State.Terminated.ExitCode != 1 || cond(s, v1.PodReady) != v1.ConditionTrue || s.Phase != v1.PodRunning {
		t.Errorf("%+v", s)
	}
}

func TestQOS(t *testing.T) {
	if got := QOS(pod(v1.RestartPolicyAlways, "x")); got != v1.PodQOSBestEffort {
		t.Errorf("%s", got)
	}
}
