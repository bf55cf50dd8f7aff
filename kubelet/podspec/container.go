package podspec

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/nodeactor/nodeactor/kubelet/images"
	"github.com/nodeactor/nodeactor/kubelet/runtime"
)

// Labels kept with runtime records, and the layout below a pod's directory.
const (
	// LabelImage and LabelImageID say what a container was started from.
	LabelImage, LabelImageID = "image", "imageID"
	// LabelLayers lists the layer directories a container's root is made of, so that none is deleted under it.
	LabelLayers   = "layers"
	layersJoin    = ":"
	containersDir = "containers"
	logSuffix     = ".log"
	idBytes       = 32
)

// Request is everything a container start depends on.
type Request struct {
	EnvSource
	Container *v1.Container
	Attempt   int
	// SandboxAt distinguishes the runs of one sandbox from those of the next.
	SandboxAt time.Time
	Image     images.Image
	QOS       v1.PodQOSClass
	// PodDir is the pod's directory, Volumes where each volume is.
	PodDir  string
	Volumes map[string]string
}

// ContainerID is the ID of a run: unique among all runs of a pod.
func ContainerID(podUID, name string, attempt int, sandboxAt time.Time) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d/%d", podUID, name, attempt, sandboxAt.UnixNano()))
	return hex.EncodeToString(sum[:idBytes])
}

// LogPath is the log file of a run.
func LogPath(podDir, container string, attempt int) string {
	return filepath.Join(podDir, container, strconv.Itoa(attempt)+logSuffix)
}

// MessagePath is the file on the host that is mounted on a run's terminationMessagePath.
func MessagePath(podDir, container string, attempt int) string {
	return filepath.Join(podDir, containersDir, container, strconv.Itoa(attempt))
}

// ConfigError is returned when the pod's own words, or what they refer to, do not make a container.
type ConfigError struct{ Err error }

// Error is the cause's text.
func (e *ConfigError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *ConfigError) Unwrap() error { return e.Err }

// Build makes the runtime's spec of one run and writes the files it needs. An error is a *ConfigError if the pod is to
// blame.
func Build(ctx context.Context, r Request) (runtime.ContainerSpec, error) {
	c := r.Container
	vars, lookup, err := Env(ctx, r.EnvSource, c, r.Image.Config.Env)
	if err != nil {
		return runtime.ContainerSpec{}, &ConfigError{err}
	}
	who, err := user(r.Pod, c, r.Image)
	if err != nil {
		return runtime.ContainerSpec{}, &ConfigError{err}
	}
	args := r.Image.Config.Command(expandAll(c.Command, lookup), expandAll(c.Args, lookup))
	if len(args) == 0 {
		return runtime.ContainerSpec{}, &ConfigError{fmt.Errorf("no command specified")}
	}
	uid := string(r.Pod.UID)
	spec := runtime.ContainerSpec{
		ID: ContainerID(uid, c.Name, r.Attempt, r.SandboxAt), PodUID: uid, Name: c.Name, Attempt: r.Attempt,
		Rootfs: runtime.RootfsSpec{Layers: r.Image.Layers}, Args: args, Env: home(vars, r.Image, who.uid), Cwd: workingDir(c, r.Image),
		UID: who.uid, GID: who.gid, Groups: who.groups,
		Resources: ContainerResources(r.Pod, c, r.QOS, r.Host.MemoryBytes),
		LogPath:   LogPath(r.PodDir, c.Name, r.Attempt), Tty: c.TTY, Stdin: c.Stdin, StdinOnce: c.StdinOnce,
		StopSignal: int(StopSignal(c, r.Image)),
		Labels: map[string]string{LabelImage: r.Image.Ref, LabelImageID: r.Image.ImageID(),
			LabelLayers: strings.Join(r.Image.Layers, layersJoin)},
	}
	if err := secure(r.Pod, c, &spec); err != nil {
		return spec, &ConfigError{err}
	}
	spec.Mounts, err = r.mounts(lookup)
	return spec, err
}

func expandAll(in []string, lookup func(string) (string, bool)) (out []string) {
	for _, s := range in {
		out = append(out, Expand(s, lookup))
	}
	return out
}

func workingDir(c *v1.Container, img images.Image) string {
	if c.WorkingDir != "" {
		return c.WorkingDir
	}
	return img.Config.WorkingDir
}

// home adds HOME as the image's passwd has it, as shells and tools expect it.
func home(vars []string, img images.Image, uid int) []string {
	for _, v := range vars {
		if strings.HasPrefix(v, "HOME=") {
			return vars
		}
	}
	if dir := images.HomeDir(img, strconv.Itoa(uid)); dir != "" {
		return append(vars, "HOME="+dir)
	}
	return vars
}

// StopSignal is what asks the container to end: its own choice, the image's, or SIGTERM.
func StopSignal(c *v1.Container, img images.Image) syscall.Signal {
	name := img.Config.StopSignal
	if c.Lifecycle != nil && c.Lifecycle.StopSignal != nil {
		name = string(*c.Lifecycle.StopSignal)
	}
	return parseSignal(name)
}

func parseSignal(name string) syscall.Signal {
	if n, err := strconv.Atoi(name); err == nil && n > 0 && n < 65 {
		return syscall.Signal(n)
	}
	name = strings.ToUpper(name)
	if rest, ok := strings.CutPrefix(name, "SIGRTMIN+"); ok {
		if n, err := strconv.Atoi(rest); err == nil && n >= 0 && n <= 30 {
			return syscall.Signal(34 + n)
		}
	}
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	if s := unix.SignalNum(name); s != 0 {
		return s
	}
	return syscall.SIGTERM
}

// mounts are the pod's volumes and the files every container gets.
func (r Request) mounts(lookup func(string) (string, bool)) ([]runtime.Mount, error) {
	var out []runtime.Mount
	taken := map[string]bool{}
	for i := range r.Container.VolumeMounts {
		vm := &r.Container.VolumeMounts[i]
		m, err := r.volumeMount(vm, i, lookup)
		if err != nil {
			return nil, err
		}
		taken[m.Destination] = true
		out = append(out, m)
	}
	add := func(source, destination string, readOnly bool) {
		if !taken[destination] {
			out = append(out, runtime.Mount{Source: source, Destination: destination, ReadOnly: readOnly})
		}
	}
	readOnly := r.Container.SecurityContext != nil && optional(r.Container.SecurityContext.ReadOnlyRootFilesystem)
	add(filepath.Join(r.PodDir, hostsFile), "/etc/hosts", readOnly)
	add(filepath.Join(r.PodDir, resolvFile), "/etc/resolv.conf", readOnly)
	add(filepath.Join(r.PodDir, hostnameFile), "/etc/hostname", readOnly)
	if p := r.Container.TerminationMessagePath; p != "" {
		file := MessagePath(r.PodDir, r.Container.Name, r.Attempt)
		if err := touch(file); err != nil {
			return nil, err
		}
		add(file, filepath.Clean("/"+p), false)
	}
	return out, nil
}

// touch makes an empty file every user of the container may write.
func touch(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		return err
	}
	return os.Chmod(path, 0o666)
}

func (r Request) volumeMount(vm *v1.VolumeMount, index int, lookup func(string) (string, bool)) (runtime.Mount, error) {
	path, ok := r.Volumes[vm.Name]
	if !ok {
		return runtime.Mount{}, &ConfigError{fmt.Errorf("cannot mount volume %q: the pod has none of that name", vm.Name)}
	}
	m := runtime.Mount{Source: path, Destination: filepath.Clean("/" + vm.MountPath), ReadOnly: vm.ReadOnly}
	m.RecursiveReadOnly = vm.ReadOnly && vm.RecursiveReadOnly != nil && *vm.RecursiveReadOnly != v1.RecursiveReadOnlyDisabled
	if vm.MountPropagation != nil {
		m.Propagation = runtime.Propagation(*vm.MountPropagation)
	}
	sub := vm.SubPath
	if vm.SubPathExpr != "" {
		var missing string
		sub = Expand(vm.SubPathExpr, func(n string) (string, bool) {
			v, ok := lookup(n)
			if !ok {
				missing = n
			}
			return v, ok
		})
		if missing != "" {
			return m, &ConfigError{fmt.Errorf("missing value for %q in subPathExpr %q", missing, vm.SubPathExpr)}
		}
	}
	if sub == "" {
		return m, nil
	}
	var err error
	m.Source, err = subPath(r.PodDir, vm.Name, r.Container.Name, index, path, sub)
	return m, err
}

// Layers are the layer directories named by the labels of a runtime record.
func Layers(labels map[string]string) []string {
	if labels[LabelLayers] == "" {
		return nil
	}
	return strings.Split(labels[LabelLayers], layersJoin)
}
