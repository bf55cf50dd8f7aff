package podspec

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeactor/nodeactor/kubelet/images"
	"github.com/nodeactor/nodeactor/kubelet/runtime"
)

func TestExpand(t *testing.T) {
	vars := map[string]string{"A": "1", "EMPTY": "", "NEST": "$(A)"}
	lookup := func(n string) (string, bool) { v, ok := vars[n]; return v, ok }
	for in, want := range map[string]string{
		"plain": "plain", "$(A)": "1", "x$(A)y": "x1y", "$$(A)": "$(A)", "$$$(A)": "$1", "$(NONE)": "$(NONE)", "$(EMPTY)": "",
		"$(NEST)": "$(A)", "$A": "$A", "$": "$", "$(": "$(", "$(A": "$(A", "$$": "$", "a$": "a$", "$(A)$(A)": "11", "$()": "$()",
	} {
		if got := Expand(in, lookup); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzExpand(f *testing.F) {
	f.Add("$(A)$$(B)$(")
	f.Fuzz(func(t *testing.T, s string) {
		got := Expand(s, func(string) (string, bool) { return "", false })
		if !strings.Contains(s, "$$") && got != s {
			t.Errorf("%q became %q though nothing is known", s, got)
		}
	})
}

func TestCPUNumbers(t *testing.T) {
	for milli, want := range map[int64]uint64{0: 2, 1: 2, 2: 2, 3: 3, 100: 102, 1000: 1024, 300000: 262144} {
		if got := Shares(milli); got != want {
			t.Errorf("shares of %dm: %d, want %d", milli, got, want)
		}
	}
	for milli, want := range map[int64]int64{0: 0, 1: 1000, 5: 1000, 20: 2000, 1000: 100000, 2500: 250000} {
		if got, period := Quota(milli); got != want || (want > 0) != (period == 100000) {
			t.Errorf("quota of %dm: %d/%d, want %d", milli, got, period, want)
		}
	}
}

func list(cpu, memory string) v1.ResourceList {
	l := v1.ResourceList{}
	if cpu != "" {
		l[v1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		l[v1.ResourceMemory] = resource.MustParse(memory)
	}
	return l
}

func TestOOMScore(t *testing.T) {
	c := v1.Container{Resources: v1.ResourceRequirements{Requests: list("", "1Gi")}}
	critical := int32(2000001000)
	for _, x := range []struct {
		qos      v1.PodQOSClass
		memory   int64
		priority *int32
		want     int
	}{
		{v1.PodQOSGuaranteed, 4 << 30, nil, -997}, {v1.PodQOSBestEffort, 4 << 30, nil, 1000}, {v1.PodQOSBurstable, 4 << 30, nil, 750},
		{v1.PodQOSBurstable, 1 << 30, nil, 3}, {v1.PodQOSBurstable, 1 << 50, nil, 999}, {v1.PodQOSBurstable, 0, nil, 999}, {v1.PodQOSBestEffort, 1, &critical, -997},
	} {
		if got := OOMScore(&v1.Pod{Spec: v1.PodSpec{Priority: x.priority}}, &c, x.qos, x.memory); got != x.want {
			t.Errorf("%s of %d: %d, want %d", x.qos, x.memory, got, x.want)
		}
	}
}

func TestPodResources(t *testing.T) {
	p := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{
		{Resources: v1.ResourceRequirements{Requests: list("100m", "64Mi"), Limits: list("200m", "128Mi")}},
		{Resources: v1.ResourceRequirements{Requests: list("100m", ""), Limits: list("", "128Mi")}},
	}}}
	if got, want := PodResources(p), (runtime.Resources{CPUShares: 204, MemoryBytes: 256 << 20}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	p.Spec.Containers[1].Resources.Limits = list("300m", "")
	if got, want := PodResources(p), (runtime.Resources{CPUShares: 204, CPUQuota: 50000, CPUPeriod: 100000}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestSignals(t *testing.T) {
	for name, want := range map[string]syscall.Signal{"": unix.SIGTERM, "SIGINT": unix.SIGINT, "int": unix.SIGINT, "9": unix.SIGKILL,
		"SIGRTMIN+3": 37, "rubbish": unix.SIGTERM, "999": unix.SIGTERM, "-1": unix.SIGTERM} {
		if got := StopSignal(&v1.Container{}, images.Image{Config: images.Config{StopSignal: name}}); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
	own := v1.Signal("SIGQUIT")
	if got := StopSignal(&v1.Container{Lifecycle: &v1.Lifecycle{StopSignal: &own}}, images.Image{Config: images.Config{StopSignal: "SIGINT"}}); got != unix.SIGQUIT {
		t.Errorf("own signal: %v", got)
	}
}

func TestHostnames(t *testing.T) {
	yes := true
	for _, c := range []struct {
		spec         v1.PodSpec
		name         string
		host, kernel string
		fqdn         string
	}{
		{v1.PodSpec{}, "web", "web", "web", ""},
		{v1.PodSpec{Hostname: "h", Subdomain: "sub"}, "web", "h", "h", "h.sub.ns.svc.cluster.local"},
		{v1.PodSpec{Hostname: "h", Subdomain: "sub", SetHostnameAsFQDN: &yes}, "web", "h", "h.sub.ns.svc.cluster.local", "h.sub.ns.svc.cluster.local"},
		{v1.PodSpec{}, strings.Repeat("a", 62) + "-bc", strings.Repeat("a", 62), strings.Repeat("a", 62), ""},
	} {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: c.name, Namespace: "ns"}, Spec: c.spec}
		host, fqdn := Hostname(p, "cluster.local")
		if host != c.host || fqdn != c.fqdn || KernelHostname(p, "cluster.local") != c.kernel {
			t.Errorf("%s: %q %q %q", c.name, host, fqdn, KernelHostname(p, "cluster.local"))
		}
	}
}

func TestResolv(t *testing.T) {
	host := Host{ClusterDNS: []string{"10.96.0.10"}, ClusterDomain: "cluster.local", ResolvConf: "# c\nsearch example.com\nnameserver 192.0.2.53\noptions timeout:1\n"}
	one := "1"
	for name, c := range map[string]struct {
		spec v1.PodSpec
		host Host
		want string
	}{
		"cluster first": {v1.PodSpec{DNSPolicy: v1.DNSClusterFirst}, host,
			"search ns.svc.cluster.local svc.cluster.local cluster.local example.com\nnameserver 10.96.0.10\noptions ndots:5\n"},
		"host network": {v1.PodSpec{DNSPolicy: v1.DNSClusterFirst, HostNetwork: true}, host, "search example.com\nnameserver 192.0.2.53\noptions timeout:1\n"},
		"no cluster dns": {v1.PodSpec{DNSPolicy: v1.DNSClusterFirst}, Host{ResolvConf: host.ResolvConf},
			"search example.com\nnameserver 192.0.2.53\noptions timeout:1\n"},
		"default": {v1.PodSpec{DNSPolicy: v1.DNSDefault}, host, "search example.com\nnameserver 192.0.2.53\noptions timeout:1\n"},
		"none": {v1.PodSpec{DNSPolicy: v1.DNSNone, DNSConfig: &v1.PodDNSConfig{Nameservers: []string{"1.1.1.1"}, Searches: []string{"x"},
			Options: []v1.PodDNSConfigOption{{Name: "ndots", Value: &one}, {Name: "edns0"}}}}, host, "search x\nnameserver 1.1.1.1\noptions ndots:1 edns0\n"},
		"merged": {v1.PodSpec{DNSPolicy: v1.DNSClusterFirst, DNSConfig: &v1.PodDNSConfig{Nameservers: []string{"a", "b", "c"}, Options: []v1.PodDNSConfigOption{{Name: "ndots", Value: &one}}}}, host,
			"search ns.svc.cluster.local svc.cluster.local cluster.local example.com\nnameserver 10.96.0.10\nnameserver a\nnameserver b\noptions ndots:1\n"},
	} {
		got, err := Resolv(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}, Spec: c.spec}, c.host)
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v\nwant %q", name, got, err, c.want)
		}
	}
}

func TestHosts(t *testing.T) {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns"}, Spec: v1.PodSpec{Subdomain: "s",
		HostAliases: []v1.HostAlias{{IP: "192.0.2.7", Hostnames: []string{"a", "b"}}}}}
	got, err := Hosts(p, []string{"10.0.0.1"}, Host{ClusterDomain: "d"})
	if err != nil || !strings.Contains(got, "10.0.0.1\tweb.s.ns.svc.d\tweb\n") || !strings.HasSuffix(got, "192.0.2.7\ta\tb\n") || !strings.Contains(got, "127.0.0.1\tlocalhost\n") {
		t.Errorf("%s %v", got, err)
	}
}

func TestServiceEnvironment(t *testing.T) {
	no := false
	src := EnvSource{Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}, Services: []Service{
		{Namespace: "default", Name: "kubernetes", ClusterIP: "10.96.0.1", Ports: []ServicePort{{Name: "https", Protocol: "TCP", Port: 443}}},
		{Namespace: "ns", Name: "db-1", ClusterIP: "10.96.0.2", Ports: []ServicePort{{Protocol: "UDP", Port: 53}}},
		{Namespace: "ns", Name: "headless", ClusterIP: "None", Ports: []ServicePort{{Port: 1}}},
		{Namespace: "other", Name: "far", ClusterIP: "10.96.0.3", Ports: []ServicePort{{Port: 1}}},
	}}
	get := func() string {
		l, _, err := Env(context.Background(), src, &v1.Container{}, []string{"PATH=/bin"})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(l, "\n")
	}
	all := get()
	for _, want := range []string{"PATH=/bin", "KUBERNETES_SERVICE_HOST=10.96.0.1", "KUBERNETES_SERVICE_PORT_HTTPS=443", "KUBERNETES_PORT=tcp://10.96.0.1:443",
		"DB_1_PORT_53_UDP=udp://10.96.0.2:53", "DB_1_PORT_53_UDP_PROTO=udp", "DB_1_SERVICE_PORT=53"} {
		if !strings.Contains(all, want) {
			t.Errorf("lacks %s:\n%s", want, all)
		}
	}
	if strings.Contains(all, "FAR") || strings.Contains(all, "HEADLESS") {
		t.Errorf("too much:\n%s", all)
	}
	src.Pod.Spec.EnableServiceLinks = &no
	if all := get(); strings.Contains(all, "DB_1") || !strings.Contains(all, "KUBERNETES_SERVICE_HOST") {
		t.Errorf("without links:\n%s", all)
	}
}

func TestUserAndNonRoot(t *testing.T) {
	root := t.TempDir()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(root, "etc"), 0o755))
	must(os.WriteFile(filepath.Join(root, "etc/passwd"), []byte("root:x:0:0::/root:/bin/sh\nweb:x:33:34::/:/bin/sh\n"), 0o644))
	must(os.WriteFile(filepath.Join(root, "etc/group"), []byte("extra:x:44:web\n"), 0o644))
	yes, n, strict := true, func(i int64) *int64 { return &i }, v1.SupplementalGroupsPolicyStrict
	for name, c := range map[string]struct {
		image string
		pod   v1.PodSecurityContext
		own   v1.SecurityContext
		want  identity
		fails string
	}{
		"image name":        {"web", v1.PodSecurityContext{}, v1.SecurityContext{}, identity{33, 34, []int{44}}, ""},
		"pod user":          {"", v1.PodSecurityContext{RunAsUser: n(33), FSGroup: n(7), SupplementalGroups: []int64{9}}, v1.SecurityContext{}, identity{33, 34, []int{7, 9, 44}}, ""},
		"container wins":    {"web", v1.PodSecurityContext{RunAsUser: n(33)}, v1.SecurityContext{RunAsUser: n(5), RunAsGroup: n(6)}, identity{5, 6, []int{}}, ""},
		"strict":            {"web", v1.PodSecurityContext{SupplementalGroupsPolicy: &strict}, v1.SecurityContext{}, identity{33, 34, []int{}}, ""},
		"root refused":      {"", v1.PodSecurityContext{RunAsNonRoot: &yes}, v1.SecurityContext{}, identity{}, "image will run as root"},
		"named refused":     {"web", v1.PodSecurityContext{RunAsNonRoot: &yes}, v1.SecurityContext{}, identity{}, "non-numeric user"},
		"asked for root":    {"33", v1.PodSecurityContext{RunAsNonRoot: &yes}, v1.SecurityContext{RunAsUser: n(0)}, identity{}, "breaks non-root policy"},
		"numeric user":      {"33", v1.PodSecurityContext{RunAsNonRoot: &yes}, v1.SecurityContext{}, identity{33, 34, []int{44}}, ""},
		"unknown user name": {"nobody", v1.PodSecurityContext{}, v1.SecurityContext{}, identity{}, "nobody"},
	} {
		p := &v1.Pod{Spec: v1.PodSpec{SecurityContext: &c.pod}}
		got, err := user(p, &v1.Container{Name: "c", SecurityContext: &c.own}, images.Image{Layers: []string{root}, Config: images.Config{User: c.image}})
		switch {
		case c.fails != "":
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: %v", name, err)
			}
		case err != nil || got.uid != c.want.uid || got.gid != c.want.gid || len(got.groups)+len(c.want.groups) > 0 && !reflect.DeepEqual(got.groups, c.want.groups):
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestResourceFields(t *testing.T) {
	p := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: list("250m", "100Mi"), Limits: list("1500m", "")}}}}}
	host := Host{Allocatable: list("4", "2Gi")}
	for ref, want := range map[string]string{"limits.cpu": "2", "requests.cpu": "1", "limits.memory": "2147483648", "requests.memory": "104857600"} {
		got, err := Resource(p, nil, &v1.ResourceFieldSelector{ContainerName: "c", Resource: ref}, host)
		if err != nil || got != want {
			t.Errorf("%s: %q, %v", ref, got, err)
		}
	}
	if got, _ := Resource(p, nil, &v1.ResourceFieldSelector{ContainerName: "c", Resource: "requests.cpu", Divisor: resource.MustParse("1m")}, host); got != "250" {
		t.Errorf("divided: %s", got)
	}
	for _, bad := range []string{"", "cpu", "other.cpu"} {
		if _, err := Resource(p, nil, &v1.ResourceFieldSelector{ContainerName: "c", Resource: bad}, host); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestSubPathCannotLeaveTheVolume(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting needs root")
	}
	dir := t.TempDir()
	volume, podDir := filepath.Join(dir, "volume"), filepath.Join(dir, "pod")
	outside := filepath.Join(dir, "outside")
	for _, d := range []string{volume, podDir, outside} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for unix.Unmount(filepath.Join(podDir, subPathsDir, "v", "c", "0"), unix.MNT_DETACH) == nil {
		}
	})
	if err := os.Symlink(outside, filepath.Join(volume, "abs")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../outside", filepath.Join(volume, "rel")); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"abs", "rel", "abs/new", "rel/new", "../outside", "/etc", "a/../../outside"} {
		if p, err := subPath(podDir, "v", "c", 0, volume, bad); err == nil {
			t.Errorf("%s is mounted at %s", bad, p)
		}
	}
	if err := os.Symlink("in", filepath.Join(volume, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(volume, "in"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a second run finds the mount of the first
		p, err := subPath(podDir, "v", "c", 0, volume, "link")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(p, "f"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(volume, "in", "f")); err != nil {
		t.Error(err)
	}
	if entries, _ := os.ReadDir(outside); len(entries) > 0 {
		t.Errorf("something was made outside: %v", entries)
	}
}
