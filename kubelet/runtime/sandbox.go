package runtime

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
)

// sandboxRecord is what the ledger has of a sandbox.
type sandboxRecord struct {
	Spec      SandboxSpec
	Cgroup    string
	CreatedAt time.Time
}

// pod is a sandbox that exists, at least in part.
type pod struct {
	record sandboxRecord
	// ready says that it is complete and of this boot.
	ready bool
	// pause is the container that holds the shared process namespace, if there is one.
	pause *container
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// checkName refuses what cannot be a file name, a cgroup name and libcontainer's id.
func checkName(what, name string) error {
	if len(name) > maxNameBytes || !nameForm.MatchString(name) {
		return fmt.Errorf("cannot use %s %q: it must be at most %d letters, digits, '-', '_' or '.'", what, name, maxNameBytes)
	}
	return nil
}

// CreateSandbox implements Runtime.
func (e *Engine) CreateSandbox(ctx context.Context, spec SandboxSpec) (Sandbox, error) {
	if err := checkName("pod uid", spec.PodUID); err != nil {
		return Sandbox{}, err
	}
	leave, err := e.gates.enter(ctx, spec.PodUID)
	if err != nil {
		return Sandbox{}, err
	}
	defer leave()
	if p := e.pod(spec.PodUID); p != nil {
		if p.ready {
			return e.sandboxView(p), nil
		}
		return Sandbox{}, fmt.Errorf("cannot create sandbox %s: a broken one is there, remove it first", spec.PodUID)
	}
	return e.makeSandbox(ctx, spec)
}

func (e *Engine) makeSandbox(ctx context.Context, spec SandboxSpec) (Sandbox, error) {
	p := &pod{record: sandboxRecord{Spec: spec, Cgroup: e.podCgroup(spec), CreatedAt: e.cfg.Clock.Now()}}
	if err := e.cfg.Ledger.Put(bucketSandboxes, spec.PodUID, p.record); err != nil {
		return Sandbox{}, fmt.Errorf("cannot record sandbox %s: %w", spec.PodUID, err)
	}
	e.mu.Lock()
	e.pods[spec.PodUID] = p
	e.mu.Unlock()
	request := wire.SandboxRequest{Layout: e.layout, Spec: spec, Cgroup: p.record.Cgroup}
	err := e.heavy(ctx, e.cfg.StartDeadline, wire.OpSandbox, request)
	if err == nil && spec.ShareProcessNamespace && !spec.HostPID {
		err = e.startPause(ctx, p)
	}
	if err != nil {
		undo, cancel := cleanup(ctx)
		defer cancel()
		return Sandbox{}, errors.Join(fmt.Errorf("cannot create sandbox %s: %w", spec.PodUID, err), e.removePod(undo, spec.PodUID))
	}
	e.mu.Lock()
	p.ready = true
	e.mu.Unlock()
	return e.sandboxView(p), nil
}

func (e *Engine) startPause(ctx context.Context, p *pod) error {
	record := containerRecord{
		Spec:   ContainerSpec{ID: "pause-" + p.record.Spec.PodUID, PodUID: p.record.Spec.PodUID},
		Cgroup: filepath.Join(p.record.Cgroup, "pause"), CreatedAt: p.record.CreatedAt, Pause: true,
	}
	c, err := e.launch(ctx, p, record)
	p.pause = c
	return err
}

// podCgroup is where the kubelet of upstream would put it, below our own root.
func (e *Engine) podCgroup(spec SandboxSpec) string {
	class := map[QOS]string{Guaranteed: "", Burstable: "burstable"}
	sub, ok := class[spec.QOS]
	if !ok {
		sub = "besteffort"
	}
	return filepath.Join(e.cfg.CgroupRoot, sub, "pod"+spec.PodUID)
}

func (e *Engine) pod(uid string) *pod {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.pods[uid]
}

func (e *Engine) sandboxView(p *pod) Sandbox {
	s := Sandbox{PodUID: p.record.Spec.PodUID, CgroupPath: p.record.Cgroup, CreatedAt: p.record.CreatedAt}
	if !p.record.Spec.HostNetwork {
		s.NetNS = e.layout.Namespace(s.PodUID, "net")
	}
	return s
}

// RemoveSandbox implements Runtime.
func (e *Engine) RemoveSandbox(ctx context.Context, podUID string) error {
	leave, err := e.gates.enter(ctx, podUID)
	if err != nil {
		return err
	}
	defer leave()
	return e.removePod(ctx, podUID)
}

// removePod removes the pod and then its records; the gate is held.
func (e *Engine) removePod(ctx context.Context, podUID string) error {
	p := e.pod(podUID)
	if p == nil {
		return nil
	}
	members := e.members(podUID)
	request := wire.RemoveRequest{Layout: e.layout, PodUID: podUID, Cgroup: p.record.Cgroup, WaitMS: int(killWait / time.Millisecond)}
	for _, c := range members {
		request.Containers = append(request.Containers, wire.Removal{ID: c.record.Spec.ID, Cgroup: c.record.Cgroup})
	}
	if err := e.heavy(ctx, removeDeadline, wire.OpRemoveSandbox, request); err != nil {
		return fmt.Errorf("cannot remove sandbox %s: %w", podUID, err)
	}
	for _, c := range members {
		if err := e.forget(c); err != nil {
			return err
		}
	}
	if err := e.cfg.Ledger.Delete(bucketSandboxes, podUID); err != nil {
		return fmt.Errorf("cannot forget sandbox %s: %w", podUID, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.pods, podUID)
	return nil
}

// members are the pod's containers, the pause container last.
func (e *Engine) members(podUID string) []*container {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []*container
	for _, c := range e.containers {
		if c.record.Spec.PodUID == podUID {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *container) int {
		if a.record.Pause != b.record.Pause {
			if a.record.Pause {
				return 1
			}
			return -1
		}
		return a.record.CreatedAt.Compare(b.record.CreatedAt)
	})
	return out
}
