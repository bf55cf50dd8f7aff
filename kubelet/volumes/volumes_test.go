package volumes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	authv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/nodeactor/nodeactor/kubelet/podspec"
)

var epoch = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// api is a source of objects that can be down.
type api struct {
	cms    map[string]*v1.ConfigMap
	tokens int
	down   error
}

func (a *api) ConfigMap(_ context.Context, _, name string) (*v1.ConfigMap, error) {
	if a.down != nil {
		return nil, a.down
	}
	if cm := a.cms[name]; cm != nil {
		return cm, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
}

func (a *api) Secret(_ context.Context, _, name string) (*v1.Secret, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
}

func (a *api) Token(context.Context, string, string, authv1.TokenRequestSpec) (authv1.TokenRequestStatus, error) {
	if a.down != nil {
		return authv1.TokenRequestStatus{}, a.down
	}
	a.tokens++
	return authv1.TokenRequestStatus{Token: fmt.Sprintf("t%d", a.tokens), ExpirationTimestamp: metav1.NewTime(epoch.Add(time.Hour))}, nil
}

func newManager(t *testing.T, a *api) *Manager {
	return New(t.TempDir(), a, func() podspec.Host { return podspec.Host{} })
}

func podOf(vs ...v1.Volume) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u"}, Spec: v1.PodSpec{Volumes: vs}}
}

func configMap(name string, optional bool, items ...v1.KeyToPath) v1.Volume {
	return v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: name}, Items: items, Optional: &optional}}}
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

func TestPublishSwitchesAtOnce(t *testing.T) {
	dir := t.TempDir()
	if err := publish(dir, payload{"a": {data: []byte("1"), mode: 0o644}, "d/x": {data: []byte("x"), mode: 0o600}}, -1, epoch); err != nil {
		t.Fatal(err)
	}
	first, _ := os.Readlink(filepath.Join(dir, dataLink))
	if content(t, filepath.Join(dir, "a")) != "1" || content(t, filepath.Join(dir, "d/x")) != "x" {
		t.Error("wrong content")
	}
	// The same content changes nothing at all.
	if err := publish(dir, payload{"a": {data: []byte("1"), mode: 0o644}, "d/x": {data: []byte("x"), mode: 0o600}}, -1, epoch); err != nil {
		t.Fatal(err)
	}
	if again, _ := os.Readlink(filepath.Join(dir, dataLink)); again != first {
		t.Error("equal content was written anew")
	}
	if err := publish(dir, payload{"a": {data: []byte("2"), mode: 0o644}, "b": {data: []byte("b"), mode: 0o644}}, -1, epoch); err != nil {
		t.Fatal(err)
	}
	if content(t, filepath.Join(dir, "a")) != "2" || content(t, filepath.Join(dir, "b")) != "b" {
		t.Error("wrong content after the change")
	}
	for _, gone := range []string{"d", first} {
		if _, err := os.Lstat(filepath.Join(dir, gone)); !os.IsNotExist(err) {
			t.Errorf("%s is left", gone)
		}
	}
	for _, bad := range []string{"../x", "/x", "a/../../x", "..data", "", "a//b", "."} {
		if err := publish(dir, payload{bad: {}}, -1, epoch); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// TestPublishSurvivesAnInterruption leaves what a killed writer leaves.
func TestPublishSurvivesAnInterruption(t *testing.T) {
	dir := t.TempDir()
	os.MkdirAll(filepath.Join(dir, "..2024_01_01_00_00_00.1"), 0o700)
	os.Symlink("nowhere", filepath.Join(dir, newDataLink))
	if err := publish(dir, payload{"a": {data: []byte("1"), mode: 0o644}}, -1, epoch); err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 3 { // the generation, its link, and the file
		t.Errorf("left: %v", entries)
	}
}

func TestConfigMapVolumes(t *testing.T) {
	a := &api{cms: map[string]*v1.ConfigMap{"c": {Data: map[string]string{"k": "v"}, BinaryData: map[string][]byte{"bin": {0, 1}}}}}
	m := newManager(t, a)
	paths, err := m.Mount(t.Context(), podOf(configMap("c", false)), nil, epoch)
	if err != nil || content(t, filepath.Join(paths["v"], "k")) != "v" || content(t, filepath.Join(paths["v"], "bin")) != "\x00\x01" {
		t.Error(err)
	}
	mode := int32(0o400)
	paths, err = m.Mount(t.Context(), podOf(configMap("c", false, v1.KeyToPath{Key: "k", Path: "deep/er", Mode: &mode})), nil, epoch)
	if err != nil || content(t, filepath.Join(paths["v"], "deep/er")) != "v" {
		t.Error(err)
	}
	if info, err := os.Stat(filepath.Join(paths["v"], "deep/er")); err != nil || info.Mode().Perm() != 0o400 {
		t.Errorf("%v %v", info, err)
	}
	for name, p := range map[string]*v1.Pod{"absent": podOf(configMap("none", false)), "no key": podOf(configMap("c", false, v1.KeyToPath{Key: "x", Path: "x"}))} {
		if _, err := m.Mount(t.Context(), p, nil, epoch); err == nil || !strings.Contains(err.Error(), `"v"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, p := range map[string]*v1.Pod{"absent": podOf(configMap("none", true)), "no key": podOf(configMap("c", true, v1.KeyToPath{Key: "x", Path: "x"}))} {
		if _, err := m.Mount(t.Context(), p, nil, epoch); err != nil {
			t.Errorf("optional, %s: %v", name, err)
		}
	}
}

func TestWithoutServerTheOldContentServes(t *testing.T) {
	a := &api{cms: map[string]*v1.ConfigMap{"c": {Data: map[string]string{"k": "v"}}}}
	m := newManager(t, a)
	p := podOf(configMap("c", false))
	a.down = errors.New("no route to host")
	if _, err := m.Mount(t.Context(), p, nil, epoch); err == nil {
		t.Error("mounted without a source")
	}
	a.down = nil
	if _, err := m.Mount(t.Context(), p, nil, epoch); err != nil {
		t.Fatal(err)
	}
	a.down = errors.New("no route to host")
	paths, err := New(m.podsDir, a, m.host).Mount(t.Context(), p, nil, epoch)
	if err != nil || content(t, filepath.Join(paths["v"], "k")) != "v" {
		t.Error(err)
	}
	if err := m.Refresh(t.Context(), p, nil, epoch); err == nil {
		t.Error("a failed refresh is not told")
	}
	if content(t, filepath.Join(paths["v"], "k")) != "v" {
		t.Error("a failed refresh changed the content")
	}
}

func TestTokensAreRenewedInTime(t *testing.T) {
	a := &api{}
	m := newManager(t, a)
	p := podOf(v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token"}}}}}})
	paths, err := m.Mount(t.Context(), p, nil, epoch)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at   time.Duration
		down bool
		want string
	}{{0, false, "t1"}, {40 * time.Minute, false, "t1"}, {50 * time.Minute, true, "t1"}, {51 * time.Minute, false, "t2"}} {
		a.down = nil
		if c.down {
			a.down = errors.New("no route to host")
		}
		if err := m.Refresh(t.Context(), p, nil, epoch.Add(c.at)); err != nil {
			t.Errorf("after %v: %v", c.at, err)
		}
		if got := content(t, filepath.Join(paths["v"], "token")); got != c.want {
			t.Errorf("after %v: %s, want %s", c.at, got, c.want)
		}
	}
	if err := m.Unmount("u"); err != nil || len(m.tokens) != 0 {
		t.Errorf("%v, %d tokens kept", err, len(m.tokens))
	}
}

func TestHostPathTypes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	os.WriteFile(file, nil, 0o600)
	for _, c := range []struct {
		path string
		t    v1.HostPathType
		ok   bool
	}{
		{dir, v1.HostPathDirectory, true}, {file, v1.HostPathDirectory, false}, {file, v1.HostPathFile, true}, {dir, v1.HostPathFile, false},
		{filepath.Join(dir, "new"), v1.HostPathDirectoryOrCreate, true}, {filepath.Join(dir, "newfile"), v1.HostPathFileOrCreate, true},
		{filepath.Join(dir, "none"), v1.HostPathFile, false}, {filepath.Join(dir, "none"), v1.HostPathSocket, false}, {"/dev/null", v1.HostPathCharDev, true},
		{"/dev/null", v1.HostPathBlockDev, false}, {"relative", v1.HostPathUnset, false}, {dir, v1.HostPathUnset, true}, {file, v1.HostPathDirectoryOrCreate, false},
	} {
		if err := hostPath(&v1.HostPathVolumeSource{Path: c.path, Type: &c.t}); (err == nil) != c.ok {
			t.Errorf("%s as %q: %v", c.path, c.t, err)
		}
	}
}

func TestUnknownVolumeIsNamed(t *testing.T) {
	_, err := newManager(t, &api{}).Mount(t.Context(), podOf(v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{}}}), nil, epoch)
	if err == nil || !strings.Contains(err.Error(), `"data"`) || !strings.Contains(err.Error(), "iscsi") {
		t.Errorf("%v", err)
	}
}

// TestRemovalNeverCrossesAMount mounts foreign data below a pod's directory: removal unmounts it and deletes nothing of it.
func TestRemovalNeverCrossesAMount(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting needs root")
	}
	m := newManager(t, &api{})
	memory := v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}}}
	paths, err := m.Mount(t.Context(), podOf(memory), nil, epoch)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := m.Mount(t.Context(), podOf(memory), nil, epoch); err != nil || again["v"] != paths["v"] {
		t.Error(err)
	}
	foreign := t.TempDir()
	kept := filepath.Join(foreign, "kept")
	os.WriteFile(kept, []byte("data"), 0o600)
	inner := filepath.Join(paths["v"], "in ner") // a blank is escaped in mountinfo
	os.Mkdir(inner, 0o755)
	if err := unix.Mount(foreign, inner, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	if err := m.Purge("u"); err != nil {
		t.Fatal(err)
	}
	if content(t, kept) != "data" {
		t.Error("foreign data was deleted")
	}
	if _, err := os.Stat(m.PodDir("u")); !os.IsNotExist(err) {
		t.Errorf("left: %v", err)
	}
	if left, _ := mountsBelow(m.PodDir("u")); len(left) > 0 {
		t.Errorf("mounted: %v", left)
	}
}

func TestFSGroup(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("changing groups needs root")
	}
	a := &api{cms: map[string]*v1.ConfigMap{"c": {Data: map[string]string{"k": "v"}}}}
	p := podOf(configMap("c", false), v1.Volume{Name: "e", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}})
	gid := int64(4242)
	p.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: &gid}
	paths, err := newManager(t, a).Mount(t.Context(), p, nil, epoch)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(paths["v"], "k"), paths["e"]} {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil || st.Gid != 4242 {
			t.Errorf("%s: group %d, %v", path, st.Gid, err)
		}
	}
}
