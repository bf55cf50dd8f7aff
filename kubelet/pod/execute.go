package pod

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeactor/nodeactor/kubelet/pod/core"
	"github.com/nodeactor/nodeactor/kubelet/podspec"
	"github.com/nodeactor/nodeactor/kubelet/runtime"
	"github.com/nodeactor/nodeactor/supervision"
)

// errServices is returned when a container cannot start because the cluster's Services were never seen.
var errServices = errors.New("services have not yet been read at least once, cannot construct envvars")

// execute begins one action; its outcome comes back to the machine.
func (a *Actor) execute(ctx supervision.Context, act core.Action, now time.Time) {
	switch act.Kind {
	case core.MountVolumes:
		a.mountVolumes(ctx, now)
	case core.CreateSandbox:
		a.createSandbox(ctx)
	case core.ResetSandbox:
		a.resetSandbox(ctx)
	case core.EnsureImage:
		a.ensureImage(ctx, act.Container, now)
	case core.StartContainer:
		a.startContainer(ctx, act)
	case core.PostStart:
		a.postStart(ctx, act)
	case core.StopContainer:
		a.stopContainer(ctx, act)
	case core.KillContainer:
		a.killContainer(ctx, act)
	case core.RemoveContainer:
		a.removeContainer(ctx, act)
	case core.Probe:
		a.probe(ctx, act)
	case core.Teardown:
		a.teardown(ctx)
	case core.Finalize:
		a.finalize(ctx, now)
	case core.Record:
		a.enqueue(act, now)
	}
}

func (a *Actor) mountVolumes(ctx supervision.Context, now time.Time) {
	p, ips := a.pod, a.m.PodIPs()
	a.preparation(ctx, "volumes", mountDeadline, func(c context.Context) apply {
		err := os.MkdirAll(a.env.Volumes.PodDir(a.uid), podDirMode)
		var paths map[string]string
		if err == nil {
			paths, err = a.env.Volumes.Mount(c, p, ips, now)
		}
		return func(a *Actor, _ supervision.Context, now time.Time) {
			if err == nil {
				a.paths = paths
			}
			a.m.VolumesMounted(err, now)
		}
	})
}

func (a *Actor) createSandbox(ctx supervision.Context) {
	p, qos := a.pod, a.m.QOSClass()
	a.job(ctx, "sandbox", sandboxDeadline, func(c context.Context) apply {
		s, ips, err := a.makeSandbox(c, p, qos)
		return func(a *Actor, _ supervision.Context, now time.Time) {
			if err == nil {
				a.sandboxAt = s.CreatedAt
			}
			a.m.SandboxCreated(ips, s.CreatedAt, err, now)
		}
	})
}

func (a *Actor) makeSandbox(ctx context.Context, p *v1.Pod, qos v1.PodQOSClass) (runtime.Sandbox, []string, error) {
	host := a.env.Host()
	dir := a.env.Volumes.PodDir(a.uid)
	if err := os.MkdirAll(dir, podDirMode); err != nil {
		return runtime.Sandbox{}, nil, err
	}
	spec := runtime.SandboxSpec{PodUID: a.uid, Namespace: p.Namespace, Name: p.Name,
		Hostname: podspec.KernelHostname(p, host.ClusterDomain), HostNetwork: p.Spec.HostNetwork, HostPID: p.Spec.HostPID,
		HostIPC: p.Spec.HostIPC, QOS: runtime.QOS(qos), Resources: podspec.PodResources(p)}
	spec.ShareProcessNamespace = p.Spec.ShareProcessNamespace != nil && *p.Spec.ShareProcessNamespace
	if s := p.Spec.SecurityContext; s != nil && len(s.Sysctls) > 0 {
		spec.Sysctls = map[string]string{}
		for _, k := range s.Sysctls {
			spec.Sysctls[k.Name] = k.Value
		}
	}
	s, err := a.env.Runtime.CreateSandbox(ctx, spec)
	if err != nil {
		//lint:ignore ST1005 people read this text in an Event
		return s, nil, fmt.Errorf("Failed to create pod sandbox: %w", err)
	}
	ips, err := a.attach(ctx, p, s)
	if err != nil {
		return s, nil, err
	}
	return s, ips, podspec.WriteFiles(dir, p, ips, host)
}

func (a *Actor) resetSandbox(ctx supervision.Context) {
	a.job(ctx, "reset", teardownDeadline, func(c context.Context) apply {
		err := a.env.Runtime.RemoveSandbox(c, a.uid)
		if err == nil {
			err = a.env.Network.Detach(c, a.uid)
		}
		return func(a *Actor, _ supervision.Context, now time.Time) {
			if err == nil {
				a.sandboxAt = time.Time{}
			}
			a.m.SandboxReset(err, now)
		}
	})
}

func (a *Actor) startContainer(ctx supervision.Context, act core.Action) {
	p, spec := a.pod, podspec.Container(a.pod, act.Container)
	req := podspec.Request{
		EnvSource: podspec.EnvSource{Pod: p, PodIPs: a.m.PodIPs(), Host: a.env.Host(), Objects: a.env.Objects},
		Container: spec, Attempt: act.Attempt, SandboxAt: a.sandboxAt, Image: a.images[act.Container], QOS: a.m.QOSClass(),
		PodDir: a.env.Volumes.PodDir(a.uid), Volumes: a.paths,
	}
	a.preparation(ctx, "start "+act.Container, startDeadline, func(c context.Context) apply {
		run, err := a.start(c, req)
		return func(a *Actor, _ supervision.Context, now time.Time) {
			if err != nil {
				a.m.ContainerStartFailed(act.Container, act.Attempt, err, now)
				return
			}
			a.knownAt[run.ID] = now
			a.m.ContainerStarted(act.Container, run, now)
		}
	})
}

func (a *Actor) start(ctx context.Context, req podspec.Request) (core.Run, error) {
	var known bool
	if req.Services, known = a.env.Services(); !known {
		return core.Run{}, &core.StartFailure{Reason: "CreateContainerConfigError", Err: errServices}
	}
	spec, err := podspec.Build(ctx, req)
	if err != nil {
		reason := runtime.ReasonCreateContainer
		if config := (*podspec.ConfigError)(nil); errors.As(err, &config) {
			reason = "CreateContainerConfigError"
		}
		return core.Run{}, &core.StartFailure{Reason: reason, Err: err}
	}
	c, err := a.env.Runtime.StartContainer(ctx, spec)
	if errors.Is(err, runtime.ErrExists) {
		c, err = a.env.Runtime.Container(ctx, spec.ID)
	}
	if err != nil {
		return core.Run{}, startFailure(err)
	}
	r := toRun(c)
	r.Running = true // an end that has already come is told by the look at the exit
	r.Image, r.ImageID, r.Attempt = req.Image.Ref, req.Image.ImageID(), req.Attempt
	return r, nil
}

func startFailure(err error) error {
	f := &core.StartFailure{Reason: runtime.ReasonCreateContainer, Err: err}
	if s := (*runtime.StartError)(nil); errors.As(err, &s) {
		f.Reason, f.ExitCode, f.Ran = s.Reason, startErrorExitCode, s.Reason == runtime.ReasonRunContainer
		if f.Err = errors.New(s.Message); errors.Is(err, context.Canceled) {
			f.Err = err
		}
	}
	return f
}

// stopContainer runs the preStop hook and sends the stop signal.
func (a *Actor) stopContainer(ctx supervision.Context, act core.Action) {
	spec, ip := podspec.Container(a.pod, act.Container), a.podIP()
	signal := podspec.StopSignal(spec, a.images[act.Container])
	a.job(ctx, "stop "+act.Container, act.Grace+stopMargin, func(c context.Context) apply {
		var hook error
		if spec.Lifecycle != nil && spec.Lifecycle.PreStop != nil && act.Grace > 0 {
			h, cancel := context.WithTimeout(c, act.Grace)
			hook = a.hook(h, spec, ip, act.ID, spec.Lifecycle.PreStop)
			cancel()
		}
		err := a.env.Runtime.Signal(c, act.ID, signal)
		return func(a *Actor, ctx supervision.Context, _ time.Time) {
			if err != nil && !errors.Is(err, runtime.ErrNotRunning) {
				ctx.Log().Warn("cannot signal container", "container", act.Container, "id", act.ID, "error", err)
			}
			a.m.StopSent(act.Container, act.ID, hook)
			if err != nil {
				a.inspect(ctx, act.ID)
			}
		}
	})
}

func (a *Actor) killContainer(ctx supervision.Context, act core.Action) {
	a.job(ctx, "kill "+act.Container, killDeadline, func(c context.Context) apply {
		err := a.env.Runtime.Kill(c, act.ID)
		return func(a *Actor, ctx supervision.Context, now time.Time) {
			a.m.KillDone(act.Container, act.ID, err, now)
			a.inspect(ctx, act.ID)
		}
	})
}

func (a *Actor) removeContainer(ctx supervision.Context, act core.Action) {
	delete(a.knownAt, act.ID)
	a.job(ctx, "remove "+act.Container, removeDeadline, func(c context.Context) apply {
		old, err := a.env.Runtime.Container(c, act.ID)
		if err == nil {
			err = a.env.Runtime.RemoveContainer(c, act.ID)
		}
		if err == nil {
			removeLogs(podspec.LogPath(a.env.Volumes.PodDir(a.uid), act.Container, old.Attempt))
			os.Remove(podspec.MessagePath(a.env.Volumes.PodDir(a.uid), act.Container, old.Attempt))
		}
		return func(_ *Actor, ctx supervision.Context, _ time.Time) {
			if err != nil && !errors.Is(err, runtime.ErrNotFound) {
				ctx.Log().Warn("cannot remove ended container", "id", act.ID, "error", err)
			}
		}
	})
}

// removeLogs removes a log and the older files of it.
func removeLogs(path string) {
	files, _ := filepath.Glob(path + "*")
	for _, f := range files {
		os.Remove(f)
	}
}

// inspect reads how a container ended, once it has.
func (a *Actor) inspect(ctx supervision.Context, id string) {
	if a.m == nil || a.inspecting[id] {
		return
	}
	name := ""
	for n, r := range a.m.Runs() {
		if r.ID == id {
			name = n
		}
	}
	if name == "" {
		return
	}
	a.inspecting[id] = true
	p := a.pod
	a.job(ctx, "inspect "+name, inspectDeadline, func(c context.Context) apply {
		rec, err := a.env.Runtime.Container(c, id)
		if err == nil && rec.State == runtime.Exited {
			rec.Message = a.message(p, rec)
		}
		return func(a *Actor, _ supervision.Context, now time.Time) {
			delete(a.inspecting, id)
			if err == nil && rec.State == runtime.Exited {
				a.m.ContainerExited(name, toRun(rec), now)
			}
		}
	})
}

// teardown removes what the pod has on this node but its logs.
func (a *Actor) teardown(ctx supervision.Context) {
	a.job(ctx, "teardown", teardownDeadline, func(c context.Context) apply {
		err := a.env.Runtime.RemoveSandbox(c, a.uid)
		if err == nil {
			err = a.env.Network.Detach(c, a.uid)
		}
		if err == nil {
			err = a.env.Volumes.Unmount(a.uid)
		}
		return func(a *Actor, _ supervision.Context, now time.Time) {
			if err == nil {
				a.sandboxAt, a.paths = time.Time{}, map[string]string{}
			}
			a.m.TornDown(err, now)
		}
	})
}

// finalize deletes the pod's directory, then the pod from the API, after its last status, then the node's record of it.
func (a *Actor) finalize(ctx supervision.Context, now time.Time) {
	p, removed, last := a.pod, a.removed, a.m.Status(now)
	a.env.Table.setStatus(a.uid, last, nil)
	a.job(ctx, "finalize", apiDeadline, func(c context.Context) apply {
		err := supervision.CheckFence(c)
		if err == nil {
			err = a.env.Volumes.Purge(a.uid)
		}
		if err == nil && !removed {
			err = a.deleteFromAPI(c, p, last)
		}
		if err == nil {
			err = supervision.CheckFence(c)
		}
		if err == nil {
			err = a.env.Ledger.Delete(LedgerBucket, a.uid)
		}
		return func(a *Actor, _ supervision.Context, now time.Time) { a.m.Finalized(err, now) }
	})
}

func (a *Actor) deleteFromAPI(ctx context.Context, p *v1.Pod, last v1.PodStatus) error {
	pods := a.env.Client.CoreV1().Pods(p.Namespace)
	if _, err := patchStatus(ctx, pods, p, p.Status, last); err != nil && !gone(err) {
		return err
	}
	zero := int64(0)
	err := pods.Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero, Preconditions: &metav1.Preconditions{UID: &p.UID}})
	if gone(err) {
		return nil
	}
	return err
}

// gone tells whether err says that the API does not have this very pod any more.
func gone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }

func (a *Actor) podIP() string {
	if ips := a.m.PodIPs(); len(ips) > 0 {
		return ips[0]
	}
	return ""
}
