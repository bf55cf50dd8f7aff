package core

import (
	"errors"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzMachine plays random facts in random order and holds the machine to what must always be true: it comes to rest, it
// never has two of one action under way, it never starts a container beside a living run of it, restart counts never
// go back, terminal phases stay, and a removed pod always comes to its end.
func FuzzMachine(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13})
	f.Add([]byte("abcdefghijklmnopqrstuvwxyz0123456789"))
	f.Add([]byte{3, 3, 3, 3, 9, 9, 1, 1, 0, 7, 7, 7, 200, 201, 202})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) == 0 {
			return
		}
		spec := pod([]v1.RestartPolicy{v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever}[int(script[0])%3], "init:i", "side:s", "x", "y")
		h := v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{}}
		spec.Spec.Containers[0].LivenessProbe = &v1.Probe{ProbeHandler: h, PeriodSeconds: 1, FailureThreshold: 1}
		spec.Spec.Containers[1].ReadinessProbe = &v1.Probe{ProbeHandler: h, PeriodSeconds: 1}
		spec.Spec.InitContainers[1].StartupProbe = &v1.Probe{ProbeHandler: h, PeriodSeconds: 1, FailureThreshold: 2}
		g := &chaos{play: newPlay(t, spec), counts: map[string]int32{}}
		for _, k := range []Kind{MountVolumes, CreateSandbox, ResetSandbox, EnsureImage, StartContainer, StopContainer, KillContainer, Probe, Teardown, Finalize} {
			g.open[k] = true
		}
		for _, b := range script {
			g.turn(b)
		}
		g.finish()
	})
}

type chaos struct {
	*play
	counts map[string]int32
	final  v1.PodPhase
}

func (g *chaos) turn(b byte) {
	g.settle()
	g.check()
	switch {
	case b < 100 && len(g.asked) > 0:
		i := int(b) % len(g.asked)
		a := g.asked[i]
		g.asked = append(g.asked[:i:i], g.asked[i+1:]...)
		if b%5 == 4 {
			g.refuse(a)
		} else {
			g.answer(a)
		}
	case b < 160:
		for name := range g.live {
			g.exit(name, int(b)%3)
			break
		}
	case b < 220:
		g.now = g.now.Add(time.Duration(b-160) * time.Second)
	case b < 240:
		g.m.SandboxBroke()
	case b < 250:
		p := g.m.Pod().DeepCopy()
		at := metav1.NewTime(g.now)
		p.DeletionTimestamp = &at
		g.m.PodUpdated(p)
	default:
		g.m.PodRemoved()
	}
}

func (g *chaos) refuse(a Action) {
	err := errors.New("refused")
	switch a.Kind {
	case MountVolumes:
		g.m.VolumesMounted(err, g.now)
	case CreateSandbox:
		g.m.SandboxCreated(nil, time.Time{}, err, g.now)
	case ResetSandbox:
		g.m.SandboxReset(err, g.now)
	case EnsureImage:
		g.m.ImageEnsured(a.Container, "", "", "ErrImagePull", err, g.now)
	case StartContainer:
		g.m.ContainerStartFailed(a.Container, a.Attempt, &StartFailure{Reason: "RunContainerError", Ran: g.now.Second()%2 == 0, ExitCode: 128, Err: err}, g.now)
	case Probe:
		g.m.ProbeDone(a.Container, a.ID, a.Probe, Failure, "", g.now)
	case KillContainer:
		g.m.KillDone(a.Container, a.ID, err, g.now)
	case Teardown:
		g.m.TornDown(err, g.now)
	case Finalize:
		g.m.Finalized(err, g.now)
	default:
		g.answer(a)
	}
}

func (g *chaos) check() {
	g.t.Helper()
	seen := map[string]bool{}
	for _, a := range g.asked {
		key := a.Kind.String() + a.Container + a.ID + a.Probe.String()
		if seen[key] {
			g.t.Fatalf("%s %s is asked for twice", a.Kind, a.Container)
		}
		seen[key] = true
		if _, lives := g.live[a.Container]; a.Kind == StartContainer && lives {
			g.t.Fatalf("%s is started beside a living run", a.Container)
		}
	}
	s := g.status()
	for _, c := range append(s.InitContainerStatuses, s.ContainerStatuses...) {
		if c.RestartCount < g.counts[c.Name] {
			g.t.Fatalf("restarts of %s went from %d to %d", c.Name, g.counts[c.Name], c.RestartCount)
		}
		g.counts[c.Name] = c.RestartCount
		n := 0
		for _, set := range []bool{c.State.Waiting != nil, c.State.Running != nil, c.State.Terminated != nil} {
			if set {
				n++
			}
		}
		if n != 1 {
			g.t.Fatalf("%s is in %d states", c.Name, n)
		}
	}
	if g.final != "" && s.Phase != g.final {
		g.t.Fatalf("phase %s became %s", g.final, s.Phase)
	}
	if s.Phase == v1.PodFailed || s.Phase == v1.PodSucceeded {
		g.final = s.Phase
	}
}

// finish removes the pod and answers everything: it must come to its end.
func (g *chaos) finish() {
	g.m.PodRemoved()
	for range 2000 {
		g.settle()
		g.check()
		if g.m.Done() {
			return
		}
		for len(g.asked) > 0 {
			a := g.asked[0]
			g.asked = g.asked[1:]
			g.answer(a)
		}
		g.now = g.now.Add(time.Second)
	}
	g.t.Fatalf("a removed pod does not end: %s", g.m.describe())
}
