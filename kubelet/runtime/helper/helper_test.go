package helper

import (
	"errors"
	"slices"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
)

func TestClassTellsTheCommandFromTheRest(t *testing.T) {
	for text, class := range map[string]string{
		`unable to start container process: exec: "x": executable file not found in $PATH`: wire.ClassRun,
		`exec: "/etc/passwd": permission denied`:                                           wire.ClassRun,
		`error mounting "/no" to rootfs at "/x": no such file or directory`:                wire.ClassCreate,
		"cannot mount the root file system: no layers":                                     wire.ClassCreate,
	} {
		var with classed
		if err := classify(errors.New(text)); !errors.As(err, &with) || with.class != class {
			t.Errorf("%s is %s", text, with.class)
		}
	}
}

func TestCapabilitySets(t *testing.T) {
	own := boundingSet()
	if len(own) == 0 {
		t.Skip("this process has no capability to hand on")
	}
	set := func(s wire.ContainerSpec) []string { return capabilitySet(&s).Effective }
	if got := set(wire.ContainerSpec{CapDrop: []string{"all"}}); len(got) != 0 {
		t.Errorf("after dropping all: %v", got)
	}
	if got := set(wire.ContainerSpec{CapAdd: []string{"ALL"}}); !slices.Equal(got, own) {
		t.Errorf("after adding all: %v", got)
	}
	if got := set(wire.ContainerSpec{CapDrop: []string{"KILL", "cap_chown"}}); slices.Contains(got, "CAP_KILL") || slices.Contains(got, "CAP_CHOWN") {
		t.Errorf("after dropping two: %v", got)
	}
	if got := set(wire.ContainerSpec{CapAdd: []string{"NO_SUCH"}}); slices.Contains(got, "CAP_NO_SUCH") {
		t.Errorf("an unknown one is handed on: %v", got)
	}
}

func TestSysctlsOfTheHostAreRefused(t *testing.T) {
	for _, c := range []struct {
		spec wire.SandboxSpec
		name string
		ok   bool
	}{
		{wire.SandboxSpec{}, "net.core.somaxconn", true},
		{wire.SandboxSpec{HostNetwork: true}, "net.core.somaxconn", false},
		{wire.SandboxSpec{}, "kernel.shmmax", true},
		{wire.SandboxSpec{HostIPC: true}, "kernel.shmmax", false},
		{wire.SandboxSpec{}, "vm.swappiness", false},
		{wire.SandboxSpec{}, "kernel.hostname", false},
	} {
		if err := checkSysctl(&c.spec, c.name); (err == nil) != c.ok {
			t.Errorf("%s with %+v: %v", c.name, c.spec, err)
		}
	}
}

func TestOwnMountsReplaceTheUsualAndParentsComeFirst(t *testing.T) {
	r := &wire.StartRequest{Spec: wire.ContainerSpec{Mounts: []wire.Mount{
		{Source: "/a", Destination: "/data/deep"}, {Source: "/b", Destination: "/data"}, {Source: "/c", Destination: "/dev/shm/"},
	}}}
	var at []string
	for _, m := range ociMounts(r) {
		at = append(at, m.Destination)
	}
	if slices.Contains(at, "/dev/shm") || !slices.Contains(at, "/dev/shm/") {
		t.Errorf("mounts are %v", at)
	}
	if slices.Index(at, "/data") > slices.Index(at, "/data/deep") {
		t.Errorf("order is %v", at)
	}
}

func TestRootIsAsLooseAsItsLoosestMount(t *testing.T) {
	for want, kinds := range map[string][]wire.Propagation{
		"rprivate": {wire.PropagationNone, ""},
		"rslave":   {wire.PropagationNone, wire.PropagationHostToContainer},
		"rshared":  {wire.PropagationHostToContainer, wire.PropagationBidirectional},
	} {
		var mounts []wire.Mount
		for _, k := range kinds {
			mounts = append(mounts, wire.Mount{Propagation: k})
		}
		if got := rootPropagation(mounts); got != want {
			t.Errorf("%v gave %s", kinds, got)
		}
	}
}

func TestHostNamespacesAreLeftOut(t *testing.T) {
	r := &wire.StartRequest{Layout: wire.Layout{Run: "/r"}, Sandbox: wire.SandboxSpec{PodUID: "p", HostNetwork: true, HostPID: true}}
	var kinds []specs.LinuxNamespaceType
	for _, n := range namespaces(r) {
		kinds = append(kinds, n.Type)
	}
	want := []specs.LinuxNamespaceType{specs.MountNamespace, specs.IPCNamespace, specs.CgroupNamespace}
	if !slices.Equal(kinds, want) {
		t.Errorf("namespaces are %v", kinds)
	}
}
