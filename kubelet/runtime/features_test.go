package runtime

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// want runs a script and compares its whole output.
func (h *host) want(pod, script, want string, change ...func(*ContainerSpec)) {
	h.t.Helper()
	if out, c := h.output(pod, script, change...); out != want || c.ExitCode != 0 {
		h.t.Errorf("%s\n  said %q with code %d, want %q", script, out, c.ExitCode, want)
	}
}

func TestEnvironmentDirectoryAndUser(t *testing.T) {
	h := newHost(t)
	h.sandbox("pod1")
	h.want("pod1", "echo $A $HOSTNAME; pwd", "b pod1\n/work/here", func(s *ContainerSpec) {
		s.Env, s.Cwd = []string{"A=b"}, "/work/here"
	})
	h.want("pod1", "id -u; id -g; id -G", "1000\n1001\n1001 5 6", func(s *ContainerSpec) {
		s.UID, s.GID, s.Groups = 1000, 1001, []int{5, 6}
	})
	h.want("pod1", "echo from pipe > /dev/stdout", "from pipe", func(s *ContainerSpec) { s.UID = 1000 })
}

func TestCapabilitiesAndPrivileges(t *testing.T) {
	h := newHost(t)
	h.sandbox("pod1")
	caps := "grep CapEff /proc/self/status | tr -d '\\t'"
	h.want("pod1", caps, "CapEff:00000000a80425fb")
	h.want("pod1", caps, "CapEff:0000000000000000", func(s *ContainerSpec) { s.CapDrop = []string{"ALL"} })
	h.want("pod1", caps, "CapEff:0000000000001400", func(s *ContainerSpec) {
		s.CapDrop, s.CapAdd = []string{"ALL"}, []string{"NET_ADMIN", "CAP_NET_BIND_SERVICE"}
	})
	h.want("pod1", caps, "CapEff:0000000000000000", func(s *ContainerSpec) { s.UID = 1000 })
	h.want("pod1", "grep NoNewPrivs /proc/self/status | tr -d '\\t'", "NoNewPrivs:1", func(s *ContainerSpec) { s.NoNewPrivs = true })
	h.want("pod1", "cat /proc/kcore 2>/dev/null | wc -c; (echo 1 > /proc/sys/kernel/hostname) 2>/dev/null || echo refused", "0\nrefused")
	h.want("pod1", "mount -t tmpfs none /mnt 2>/dev/null && mkdir /sys/fs/cgroup/x 2>/dev/null; test -c /dev/kmsg && echo all", "all", func(s *ContainerSpec) {
		s.Privileged, s.Args[2] = true, "mkdir -p /mnt; "+s.Args[2]
	})
}

func TestReadOnlyRootAndMounts(t *testing.T) {
	h := newHost(t)
	h.sandbox("pod1")
	h.want("pod1", "touch /x 2>/dev/null || echo read-only", "read-only", func(s *ContainerSpec) { s.ReadOnlyRootfs = true })
	src := filepath.Join(h.dir, "vol")
	if err := os.MkdirAll(filepath.Join(src, "deep"), 0o777); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(src, "file")
	if err := os.WriteFile(file, []byte("content"), 0o644); err != nil {
		t.Fatal(err)
	}
	h.want("pod1", "echo w > /rw/deep/new; touch /ro/x 2>/dev/null || echo ro; cat /etc/one; df -m /tmp2 | tail -1 | awk '{print $2}'", "ro\ncontent8",
		func(s *ContainerSpec) {
			s.Mounts = []Mount{
				{Source: src, Destination: "/rw"},
				{Source: src, Destination: "/ro", ReadOnly: true, RecursiveReadOnly: true},
				{Source: file, Destination: "/etc/one", ReadOnly: true},
				{Type: "tmpfs", Destination: "/tmp2", Size: 8 << 20},
			}
		})
	if raw, err := os.ReadFile(filepath.Join(src, "deep/new")); err != nil || string(raw) != "w\n" {
		t.Errorf("written through the mount: %q, %v", raw, err)
	}
}

func TestStartErrorsLeaveNothing(t *testing.T) {
	h := newHost(t)
	h.sandbox("pod1")
	for _, c := range []struct {
		name, reason, text string
		code               int
		change             func(*ContainerSpec)
	}{
		{"missing command", ReasonRunContainer, "not found", 127, func(s *ContainerSpec) { s.Args = []string{"nothere"} }},
		{"missing path", ReasonRunContainer, "no such file", 127, func(s *ContainerSpec) { s.Args = []string{"/not/here"} }},
		{"not executable", ReasonRunContainer, "permission denied", 126, func(s *ContainerSpec) { s.Args = []string{"/etc/passwd"} }},
		{"missing mount source", ReasonCreateContainer, "no such file", 128, func(s *ContainerSpec) {
			s.Mounts = []Mount{{Source: "/no/such/source", Destination: "/x"}}
		}},
		{"missing layer", ReasonCreateContainer, "layer", 128, func(s *ContainerSpec) { s.Rootfs.Layers = []string{"/no/such/layer"} }},
		{"no command", ReasonCreateContainer, "no command", 128, func(s *ContainerSpec) { s.Args = nil }},
		{"tiny memory", ReasonCreateContainer, "memory", 128, func(s *ContainerSpec) { s.Resources.MemoryBytes = 4096 }},
	} {
		spec := h.spec("pod1", "true", c.change)
		_, err := h.StartContainer(h.ctx(), spec)
		failed, ok := err.(*StartError)
		if !ok || failed.Reason != c.reason || failed.ExitCode != c.code || !strings.Contains(failed.Message, c.text) {
			t.Errorf("%s: error is %#v", c.name, err)
		}
		if entries, _ := os.ReadDir(filepath.Join(h.dir, "run/containers")); len(entries) != 0 {
			t.Errorf("%s: left %v", c.name, entries)
		}
	}
	pods, err := h.List(h.ctx())
	if err != nil || len(pods) != 1 || len(pods[0].Containers) != 0 {
		t.Errorf("list is %+v, %v", pods, err)
	}
}

func TestLogLines(t *testing.T) {
	h := newHost(t)
	h.sandbox("pod1")
	long := LongLine
	c := h.wait(h.start("pod1", "printf 'a\\n\\nb\\n'; head -c 40000 /dev/zero | tr '\\0' x; echo; printf end").ID)
	lines := logLines(t, c.LogPath)
	var marks []string
	var joined strings.Builder
	for _, l := range lines {
		marks = append(marks, l.mark)
		joined.WriteString(l.text)
		if l.mark == "F" {
			joined.WriteString("\n")
		}
	}
	if got := strings.Join(marks, ""); got != "FFFPPFF" {
		t.Errorf("marks are %s", got)
	}
	if joined.String() != "a\n\nb\n"+strings.Repeat("x", 40000)+"\nend\n" {
		t.Errorf("text of %d bytes is not what was printed", joined.Len())
	}
	if len(lines) > 3 && len(lines[3].text) != long {
		t.Errorf("a piece has %d bytes", len(lines[3].text))
	}
	if age := time.Since(lines[0].at); age < 0 || age > testDeadline {
		t.Errorf("time of a line is %v ago", age)
	}
}

// LongLine is where the shim cuts a line.
const LongLine = 16384

func TestManyLines(t *testing.T) {
	h := newHost(t)
	h.sandbox("pod1")
	c := h.wait(h.start("pod1", "seq 1 50000").ID)
	lines := logLines(t, c.LogPath)
	if len(lines) != 50000 || lines[49999].text != "50000" {
		t.Errorf("%d lines", len(lines))
	}
}

func TestLogRotation(t *testing.T) {
	h := newHost(t)
	h.sandbox("pod1")
	c := h.start("pod1", "echo before; while ! test -e /go; do sleep 0.02; done; echo after; sleep 1000")
	eventually(t, "first line", func() bool { return len(logLines(t, c.LogPath)) == 1 })
	if err := os.Rename(c.LogPath, c.LogPath+".1"); err != nil {
		t.Fatal(err)
	}
	if err := h.ReopenLog(h.ctx(), c.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Exec(h.ctx(), c.ID, ExecSpec{Args: []string{"touch", "/go"}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "line in the new file", func() bool { return len(logLines(t, c.LogPath)) == 1 })
	if old := logLines(t, c.LogPath+".1"); len(old) != 1 || old[0].text != "before" {
		t.Errorf("old log is %v", old)
	}
}

func TestSharedSandbox(t *testing.T) {
	h := newHost(t)
	h.sandbox("pod1", func(s *SandboxSpec) {
		s.Sysctls = map[string]string{"net.core.somaxconn": "77", "kernel.shm_rmid_forced": "1"}
	})
	h.start("pod1", "echo shared > /dev/shm/x; nc -l -p 8080 -e cat; sleep 1000", func(s *ContainerSpec) { s.Name = "server" })
	h.want("pod1", "for i in $(seq 100); do echo hi | timeout 1 nc 127.0.0.1 8080 && break; sleep 0.05; done; cat /dev/shm/x; cat /proc/sys/net/core/somaxconn /proc/sys/kernel/shm_rmid_forced",
		"hi\nshared\n77\n1")
	h.want("pod1", "set -- /proc/[0-9]*; echo $#", "1")
}

func TestSharedProcessNamespace(t *testing.T) {
	h := newHost(t)
	h.sandbox("pod1", func(s *SandboxSpec) { s.ShareProcessNamespace = true })
	c := h.start("pod1", "sleep 1000 & sleep 1001")
	h.want("pod1", "cat /proc/1/comm; ls /proc/1/root/ 2>/dev/null | grep -c home; ps | grep -c 'sleep [1]000'", "nodeactor-pause\n0\n1")
	if err := h.Kill(h.ctx(), c.ID); err != nil {
		t.Fatal(err)
	}
	// Where the kernel does not end the rest with the main process, the shim does.
	c = h.start("pod1", "sleep 2000 & exit 4")
	if got := h.wait(c.ID); got.ExitCode != 4 {
		t.Errorf("exit is %+v", got)
	}
	h.want("pod1", "ps | grep -v grep | grep 'sleep [2]000' || echo gone", "gone")
	pods, err := h.List(h.ctx())
	if err != nil || len(pods) != 1 || !pods[0].Ready {
		t.Errorf("list is %+v, %v", pods, err)
	}
}

func TestHostNamespaces(t *testing.T) {
	h := newHost(t)
	s := h.sandbox("pod1", func(s *SandboxSpec) { s.HostNetwork, s.HostPID, s.HostIPC = true, true, true })
	if s.NetNS != "" {
		t.Errorf("sandbox has %q", s.NetNS)
	}
	link := func(kind string) string {
		l, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	h.want("pod1", "for n in net uts ipc pid; do readlink /proc/self/ns/$n; done; ls /sys/class/net | grep -c '^lo$'",
		strings.Join([]string{link("net"), link("uts"), link("ipc"), link("pid"), "1"}, "\n"))
}

func TestRlimitsAndScoreAreClamped(t *testing.T) {
	h := newHost(t)
	h.sandbox("pod1")
	h.want("pod1", "ulimit -n", "512", func(s *ContainerSpec) { s.Rlimits = []Rlimit{{Type: "RLIMIT_NOFILE", Soft: 512, Hard: 512}} })
	h.want("pod1", "true", "", func(s *ContainerSpec) {
		s.Rlimits = []Rlimit{{Type: "RLIMIT_NOFILE", Soft: 1 << 40, Hard: 1 << 40}}
		s.Resources.OOMScoreAdj = -997
	})
	h.want("pod1", "cat /proc/self/oom_score_adj", "900", func(s *ContainerSpec) { s.Resources.OOMScoreAdj = 900 })
}

func TestMountPropagation(t *testing.T) {
	h := newHost(t)
	h.sandbox("pod1")
	src := filepath.Join(h.dir, "shared")
	for _, dir := range []string{src, filepath.Join(src, "later"), filepath.Join(src, "inside")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mount := func(source, target string, flags uintptr, kind string) {
		if err := unix.Mount(source, target, kind, flags, ""); err != nil {
			t.Fatal(err)
		}
	}
	// What is passed on must lie on a shared mount; the host's root may be a private one.
	mount(src, src, unix.MS_BIND, "")
	mount("", src, unix.MS_SHARED, "")
	t.Cleanup(func() { _ = unix.Unmount(src, unix.MNT_DETACH) })
	follower := h.start("pod1", "while ! test -e /v/later/file; do sleep 0.02; done; echo seen", func(s *ContainerSpec) {
		s.Mounts = []Mount{{Source: src, Destination: "/v", Propagation: PropagationHostToContainer}}
	})
	private := h.start("pod1", "sleep 1000", func(s *ContainerSpec) { s.Mounts = []Mount{{Source: src, Destination: "/v"}} })
	mount("later", filepath.Join(src, "later"), 0, "tmpfs")
	if err := os.WriteFile(filepath.Join(src, "later/file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if c := h.wait(follower.ID); c.ExitCode != 0 {
		t.Errorf("the follower is %+v", c)
	}
	if code, err := h.Exec(h.ctx(), private.ID, ExecSpec{Args: []string{"test", "-e", "/v/later/file"}}); err != nil || code != 1 {
		t.Errorf("a private mount shows what came later: %d, %v", code, err)
	}
	h.want("pod1", "mount -t tmpfs inside /v/inside && touch /v/inside/file", "", func(s *ContainerSpec) {
		s.Privileged = true
		s.Mounts = []Mount{{Source: src, Destination: "/v", Propagation: PropagationBidirectional}}
	})
	if _, err := os.Stat(filepath.Join(src, "inside/file")); err != nil {
		t.Error("what a container mounted is not seen outside:", err)
	}
}
