package pod

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/nodeactor/nodeactor/kubelet/pod/core"
	"github.com/nodeactor/nodeactor/kubelet/podspec"
	"github.com/nodeactor/nodeactor/kubelet/probes"
	"github.com/nodeactor/nodeactor/kubelet/runtime"
	"github.com/nodeactor/nodeactor/supervision"
)

func (a *Actor) postStart(ctx supervision.Context, act core.Action) {
	spec, ip := podspec.Container(a.pod, act.Container), a.podIP()
	a.preparation(ctx, "postStart "+act.Container, hookDeadline, func(c context.Context) apply {
		err := a.hook(c, spec, ip, act.ID, spec.Lifecycle.PostStart)
		return func(a *Actor, _ supervision.Context, now time.Time) {
			a.m.PostStartDone(act.Container, act.ID, err, now)
		}
	})
}

// hook runs a lifecycle handler of the container id.
func (a *Actor) hook(ctx context.Context, c *v1.Container, ip, id string, h *v1.LifecycleHandler) error {
	switch {
	case h.Exec != nil:
		code, output, err := a.exec(ctx, id, h.Exec.Command)
		if err == nil && code != 0 {
			err = fmt.Errorf("command %q exited with %d: %s", strings.Join(h.Exec.Command, " "), code, output)
		}
		return err
	case h.HTTPGet != nil:
		_, _, err := probes.Get(ctx, h.HTTPGet, probes.Target{PodIP: ip, Container: c})
		return err
	case h.Sleep != nil:
		t, cancel := context.WithTimeout(ctx, time.Duration(h.Sleep.Seconds)*time.Second)
		defer cancel()
		<-t.Done()
		return nil
	case h.TCPSocket != nil:
		return nil // kept in the API for old objects; never did anything
	}
	return fmt.Errorf("lifecycle handler without an action")
}

// exec runs a command in the container id and returns the beginning of its output.
func (a *Actor) exec(ctx context.Context, id string, command []string) (int, string, error) {
	var out limited
	code, err := a.env.Runtime.Exec(ctx, id, runtime.ExecSpec{Args: command, Stdout: &out, Stderr: &out})
	return code, out.String(), err
}

// limited keeps the beginning of what is written to it.
type limited struct{ buf bytes.Buffer }

// Write never fails, so that the writer is not killed for talking much.
func (l *limited) Write(p []byte) (int, error) {
	if room := maxHookOutput - l.buf.Len(); room > 0 {
		l.buf.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (l *limited) String() string { return strings.ToValidUTF8(l.buf.String(), "\uFFFD") }

func (a *Actor) probe(ctx supervision.Context, act core.Action) {
	spec := podspec.Container(a.pod, act.Container)
	p := [...]*v1.Probe{spec.StartupProbe, spec.ReadinessProbe, spec.LivenessProbe}[act.Probe]
	timeout := time.Duration(max(p.TimeoutSeconds, 1)) * time.Second
	target := probes.Target{PodIP: a.podIP(), Container: spec, Exec: func(c context.Context, command []string) (int, string, error) {
		return a.exec(c, act.ID, command)
	}}
	a.job(ctx, act.Probe.String()+" probe "+act.Container, timeout+probeMargin, func(c context.Context) apply {
		c, cancel := context.WithTimeout(c, timeout)
		defer cancel()
		outcome, output := probes.Run(c, p.ProbeHandler, target)
		return func(a *Actor, _ supervision.Context, now time.Time) {
			a.m.ProbeDone(act.Container, act.ID, act.Probe, outcome, output, now)
		}
	})
}
