package volumes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/nodeactor/nodeactor/kubelet/objects"
	"github.com/nodeactor/nodeactor/kubelet/podspec"
)

// Directories below that of a pod.
const (
	volumesDir  = "volumes"
	subPathsDir = "volume-subpaths"
)

// Manager prepares the volumes of all pods of a node. It is safe for concurrent use by different pods.
type Manager struct {
	podsDir string
	objects objects.Source
	host    func() podspec.Host

	mu     sync.Mutex // guards tokens
	tokens map[string]token
}

// New makes a Manager for pods below podsDir. host is asked for what the downward API shows.
func New(podsDir string, source objects.Source, host func() podspec.Host) *Manager {
	if real, err := filepath.EvalSymlinks(podsDir); err == nil {
		podsDir = real
	}
	return &Manager{podsDir: podsDir, objects: source, host: host, tokens: map[string]token{}}
}

// PodDir is the directory of a pod.
func (m *Manager) PodDir(uid string) string { return filepath.Join(m.podsDir, uid) }

// Mount makes every volume of pod and returns where each is, by name. It is idempotent. The error names the first
// volume that cannot be made; what was made stays until Unmount.
func (m *Manager) Mount(ctx context.Context, pod *v1.Pod, podIPs []string, now time.Time) (map[string]string, error) {
	paths := map[string]string{}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		p, err := m.mount(ctx, pod, v, podIPs, now)
		if err != nil {
			return nil, fmt.Errorf("MountVolume.SetUp failed for volume %q : %w", v.Name, err)
		}
		paths[v.Name] = p
	}
	return paths, nil
}

// Refresh brings the content of pod's volumes up to date. What cannot be read stays as it is and is told by the error.
func (m *Manager) Refresh(ctx context.Context, pod *v1.Pod, podIPs []string, now time.Time) error {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if !refreshable(v) {
			continue
		}
		if err := m.publish(ctx, pod, v, podIPs, now); err != nil {
			return fmt.Errorf("cannot refresh volume %q: %w", v.Name, err)
		}
	}
	return nil
}

// Refreshable tells whether pod has volumes whose content can change.
func Refreshable(pod *v1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if refreshable(&pod.Spec.Volumes[i]) {
			return true
		}
	}
	return false
}

func refreshable(v *v1.Volume) bool {
	return v.ConfigMap != nil || v.Secret != nil || v.Projected != nil || v.DownwardAPI != nil
}

// Unmount removes the volumes of a pod with all their content, hostPath volumes excepted. nil when there are none.
func (m *Manager) Unmount(uid string) error {
	m.mu.Lock()
	for k := range m.tokens {
		if len(k) > len(uid) && k[:len(uid)+1] == uid+"/" {
			delete(m.tokens, k)
		}
	}
	m.mu.Unlock()
	if err := RemoveTree(filepath.Join(m.PodDir(uid), subPathsDir)); err != nil {
		return err
	}
	return RemoveTree(filepath.Join(m.PodDir(uid), volumesDir))
}

// Purge removes everything of a pod that is below its directory, logs included.
func (m *Manager) Purge(uid string) error { return RemoveTree(m.PodDir(uid)) }

func (m *Manager) dir(pod *v1.Pod, v *v1.Volume, plugin string) string {
	return filepath.Join(m.PodDir(string(pod.UID)), volumesDir, "kubernetes.io~"+plugin, v.Name)
}

func (m *Manager) mount(ctx context.Context, pod *v1.Pod, v *v1.Volume, podIPs []string, now time.Time) (string, error) {
	switch {
	case v.EmptyDir != nil:
		return m.emptyDir(pod, v)
	case v.HostPath != nil:
		return v.HostPath.Path, hostPath(v.HostPath)
	case refreshable(v):
		dir := m.dir(pod, v, plugin(v))
		had := published(dir)
		if err := os.MkdirAll(dir, dirMode); err != nil {
			return "", err
		}
		if err := m.publish(ctx, pod, v, podIPs, now); err != nil && !(had && temporary(err)) {
			return "", err
		}
		return dir, nil
	}
	return "", fmt.Errorf("volumes of type %s are not supported on this node", kind(v))
}

func plugin(v *v1.Volume) string {
	switch {
	case v.ConfigMap != nil:
		return "configmap"
	case v.Secret != nil:
		return "secret"
	case v.Projected != nil:
		return "projected"
	}
	return "downward-api"
}

// fsGroup is the group of the pod's volumes, -1 when it has none.
func fsGroup(pod *v1.Pod) int {
	if s := pod.Spec.SecurityContext; s != nil && s.FSGroup != nil {
		return int(*s.FSGroup)
	}
	return -1
}
