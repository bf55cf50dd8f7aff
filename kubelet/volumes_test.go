package kubelet

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/nodeactor/nodeactor/kubelet/runtime"
)

// tokens lets a fake API give tokens, which the tracker alone cannot.
func tokens(api *fake.Clientset) {
	api.PrependReactor("create", "serviceaccounts", func(a clienttesting.Action) (bool, apiruntime.Object, error) {
		if a.GetSubresource() != "token" {
			return false, nil, nil
		}
		return true, &authv1.TokenRequest{Status: authv1.TokenRequestStatus{Token: "a-token", ExpirationTimestamp: metav1.NewTime(time.Now().Add(time.Hour))}}, nil
	})
}

// run runs a command in the pod's main container.
func (h *host) run(pod string, command ...string) string {
	h.t.Helper()
	id := strings.TrimPrefix(status(h.get(pod), "main").ContainerID, "nodeactor://")
	var out strings.Builder
	code, err := h.engine.Exec(context.Background(), id, runtime.ExecSpec{Args: command, Stdout: &out, Stderr: &out})
	if code != 0 || err != nil {
		h.t.Errorf("%v: code %d, %v: %s", command, code, err, out.String())
	}
	return out.String()
}

func TestVolumesAndEnvironment(t *testing.T) {
	h := newHost(t, nil)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	cms, secrets := h.api.CoreV1().ConfigMaps("default"), h.api.CoreV1().Secrets("default")
	cm := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "conf"}, Data: map[string]string{"a": "1", "b": "two"}}
	_, err := cms.Create(t.Context(), cm, metav1.CreateOptions{})
	must(err)
	_, err = secrets.Create(t.Context(), &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "sec"}, Data: map[string][]byte{"key": []byte("secret")}}, metav1.CreateOptions{})
	must(err)
	_, err = h.api.CoreV1().Services("default").Create(t.Context(), &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: "my-svc"},
		Spec: v1.ServiceSpec{ClusterIP: "10.96.0.7", Ports: []v1.ServicePort{{Port: 80, Protocol: v1.ProtocolTCP}}}}, metav1.CreateOptions{})
	must(err)

	hostDir := t.TempDir()
	p := shell("vol", "exec sleep 1000")
	p.Labels = map[string]string{"color": "blue"}
	group := int64(44)
	user := int64(33)
	yes := true
	p.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: &group, RunAsUser: &user}
	mode := int32(0o400)
	size := resource.MustParse("1Mi")
	dirOrCreate := v1.HostPathDirectoryOrCreate
	p.Spec.Volumes = []v1.Volume{
		{Name: "empty", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
		{Name: "mem", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory, SizeLimit: &size}}},
		{Name: "conf", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "conf"}}}},
		{Name: "sec", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "sec", DefaultMode: &mode}}},
		{Name: "opt", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "absent", Optional: &yes}}},
		{Name: "host", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: filepath.Join(hostDir, "made"), Type: &dirOrCreate}}},
		{Name: "all", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
			{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token"}},
			{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "conf"}, Items: []v1.KeyToPath{{Key: "a", Path: "sub/a"}}}},
			{DownwardAPI: &v1.DownwardAPIProjection{Items: []v1.DownwardAPIVolumeFile{
				{Path: "labels", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
				{Path: "cpu", ResourceFieldRef: &v1.ResourceFieldSelector{ContainerName: "main", Resource: "limits.cpu"}},
			}}},
		}}}},
	}
	c := &p.Spec.Containers[0]
	c.Resources.Limits = v1.ResourceList{v1.ResourceCPU: resource.MustParse("2")}
	for _, v := range p.Spec.Volumes {
		c.VolumeMounts = append(c.VolumeMounts, v1.VolumeMount{Name: v.Name, MountPath: "/v/" + v.Name})
	}
	c.VolumeMounts = append(c.VolumeMounts,
		v1.VolumeMount{Name: "empty", MountPath: "/v/sub", SubPath: "deep/er"},
		v1.VolumeMount{Name: "empty", MountPath: "/v/expr", SubPathExpr: "$(WHO)-dir"},
		v1.VolumeMount{Name: "conf", MountPath: "/v/file", SubPath: "b", ReadOnly: true})
	c.Env = []v1.EnvVar{
		{Name: "WHO", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		{Name: "IP", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
		{Name: "A", ValueFrom: &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: "conf"}, Key: "a"}}},
		{Name: "BOTH", Value: "$(WHO)/$(A)/$(NONE)/$$(A)"},
	}
	c.EnvFrom = []v1.EnvFromSource{{Prefix: "S_", SecretRef: &v1.SecretEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "sec"}}}}
	h.create(p)
	p = h.running("vol")

	env := h.run("vol", "env")
	for _, want := range []string{"WHO=vol\n", "IP=" + p.Status.PodIP + "\n", "A=1\n", "BOTH=vol/1/$(NONE)/$(A)\n", "S_key=secret\n", "MY_SVC_SERVICE_HOST=10.96.0.7\n", "MY_SVC_PORT_80_TCP_ADDR=10.96.0.7\n", "HOSTNAME=vol\n"} {
		if !strings.Contains(env, want) {
			t.Errorf("environment lacks %q:\n%s", want, env)
		}
	}
	h.run("vol", "touch", "/v/empty/x", "/v/mem/y")
	for command, want := range map[string]string{
		"cat /v/conf/a /v/conf/b":         "1two",
		"cat /v/sec/key":                  "secret",
		"cat /v/file":                     "two",
		"cat /v/all/token":                "a-token",
		"cat /v/all/sub/a":                "1",
		"cat /v/all/labels":               `color="blue"`,
		"cat /v/all/cpu":                  "2",
		"ls /v/opt":                       "",
		"stat -L -c %a:%g /v/sec/key":     "440:44",
		"id -u":                           "33",
		"id -G":                           "33 44",
		"stat -c %g /v/empty/x":           "44",
		"cat /etc/hostname":               "vol",
		"stat -f -c %T /v/mem":            "tmpfs",
		"touch /v/sub/made /v/expr/made2": "",
		"ls /v/empty":                     "deep\nvol-dir\nx",
	} {
		if got := strings.TrimSpace(h.run("vol", "sh", "-c", command+" || true")); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	if hosts := h.run("vol", "cat", "/etc/hosts"); !strings.Contains(hosts, p.Status.PodIP+"\tvol\n") {
		t.Errorf("hosts: %s", hosts)
	}

	cm.Data["a"] = "changed"
	_, err = cms.Update(t.Context(), cm, metav1.UpdateOptions{})
	must(err)
	must(h.kubelet.s.env.Volumes.Refresh(t.Context(), p, []string{p.Status.PodIP}, time.Now()))
	if got := h.run("vol", "cat", "/v/conf/a", "/v/all/sub/a"); got != "changedchanged" {
		t.Errorf("after the update: %q", got)
	}

	h.remove("vol", 0)
	if _, err := os.Stat(filepath.Join(h.dir, "pods", "vol-uid")); !os.IsNotExist(err) {
		t.Errorf("the pod's directory is left: %v", err)
	}
	if _, err := os.Stat(filepath.Join(hostDir, "made")); err != nil {
		t.Errorf("the host path is gone: %v", err)
	}
	if mounts, _ := os.ReadFile("/proc/self/mountinfo"); strings.Contains(string(mounts), h.dir) {
		t.Errorf("mounts are left: %s", grep(string(mounts), h.dir))
	}
}

func grep(text, word string) (out string) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			out += line
		}
	}
	return out
}

func TestVolumesThatCannotBe(t *testing.T) {
	h := newHost(t, nil)
	for name, v := range map[string]v1.VolumeSource{
		"nfs":    {NFS: &v1.NFSVolumeSource{Server: "x", Path: "/"}},
		"absent": {ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "none"}}},
	} {
		p := shell(name, "true")
		p.Spec.Volumes = []v1.Volume{{Name: "thing", VolumeSource: v}}
		h.create(p)
		h.wait(name, "told about in an Event", func(*v1.Pod) bool {
			e := h.events(name)
			return strings.Contains(e, "FailedMount") && strings.Contains(e, `"thing"`) && strings.Contains(e, map[string]string{"nfs": "nfs", "absent": "not found"}[name])
		})
		h.wait(name, "waiting", func(p *v1.Pod) bool {
			s := status(p, "main")
			return s != nil && s.State.Waiting != nil && s.State.Waiting.Reason == "ContainerCreating"
		})
		h.remove(name, 0)
	}
}

// TestOfflineRestart starts a node whose API cannot be reached: what was assigned comes back.
func TestOfflineRestart(t *testing.T) {
	h := newHost(t, nil)
	h.create(shell("off", "exec sleep 1000"))
	before := status(h.running("off"), "main").ContainerID
	h.stop()
	h.api = fake.NewClientset()
	h.api.PrependReactor("*", "*", func(clienttesting.Action) (bool, apiruntime.Object, error) { return true, nil, os.ErrDeadlineExceeded })
	h.api.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) { return true, nil, os.ErrDeadlineExceeded })
	h.open()
	// The host was restarted: nothing runs any more.
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := h.engine.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	if err := h.engine.RemoveSandbox(ctx, "off-uid"); err != nil {
		t.Fatal(err)
	}
	h.start()
	end := time.Now().Add(patience)
	for {
		p, ok := h.kubelet.s.table.Get("off-uid")
		if s := status(p, "main"); ok && s != nil && s.State.Running != nil && s.ContainerID != before {
			if s.RestartCount != 1 {
				t.Errorf("restarts: %d", s.RestartCount)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the pod did not come back: %v %+v", ok, p)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
