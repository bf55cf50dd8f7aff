package kubelet

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/nodeactor/nodeactor/kubelet/images"
	"github.com/nodeactor/nodeactor/kubelet/network"
	"github.com/nodeactor/nodeactor/kubelet/runtime"
	"github.com/nodeactor/nodeactor/store/ledger"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

const (
	// patience bounds everything a test waits for; the machine may be slow.
	patience  = 60 * time.Second
	testNode  = "n1"
	testImage = "test.local/busybox:1"
	// innerEnv marks the process that runs in a network of its own.
	innerEnv = "NODEACTOR_KUBELET_TEST_INNER"
	// testCgroups begins the cgroups of these tests.
	testCgroups = "/nodeactor-kubelet-test"
)

var helperPath string

// TestMain runs the tests in a network namespace of their own, so that nothing is left in the host's.
func TestMain(m *testing.M) {
	if os.Getuid() == 0 && os.Getenv(innerEnv) == "" {
		os.Exit(inOwnNetwork())
	}
	if os.Getuid() != 0 {
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "nodeactor-kubelet-helper")
	if err == nil {
		err = prepare(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot prepare the tests:", err)
		os.Exit(1)
	}
	sweepCgroups()
	code := m.Run()
	sweepCgroups()
	os.RemoveAll(dir)
	os.Exit(code)
}

// sweepCgroups ends what runs of these tests left that were killed, and removes their cgroups and this run's.
func sweepCgroups() {
	roots, _ := filepath.Glob("/sys/fs/cgroup/*" + testCgroups)
	for _, root := range append(roots, "/sys/fs/cgroup"+testCgroups) {
		runs, _ := os.ReadDir(root)
		for _, run := range runs {
			pid, err := strconv.Atoi(run.Name()[strings.LastIndexByte(run.Name(), '-')+1:])
			if !run.IsDir() || err == nil && pid != os.Getpid() && syscall.Kill(pid, 0) == nil {
				continue
			}
			emptyCgroup(filepath.Join(root, run.Name()))
		}
		os.Remove(root)
	}
}

func emptyCgroup(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			emptyCgroup(filepath.Join(dir, e.Name()))
		}
	}
	procs, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	for _, line := range strings.Fields(string(procs)) {
		if pid, err := strconv.Atoi(line); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	for range 100 {
		if os.Remove(dir) == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func inOwnNetwork() int {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), innerEnv+"=1")
	cmd.Stdout, cmd.Stderr, cmd.Stdin = os.Stdout, os.Stderr, os.Stdin
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func prepare(dir string) error {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return err
	}
	helperPath = filepath.Join(dir, "nodeactor-runtime")
	out, err := exec.Command("go", "build", "-p", "2", "-o", helperPath, "../cmd/nodeactor-runtime").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// host is one node under test: real runtime, images and network, and an API that is a fake.
type host struct {
	t       testing.TB
	dir     string
	api     *fake.Clientset
	engine  *runtime.Engine
	images  *images.Store
	network *network.Network
	ledger  *ledger.Ledger
	sys     *supervision.System
	kubelet *Kubelet
	change  func(*Deps)
}

func needsRoot(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("starting containers needs root")
	}
	if _, err := exec.LookPath("busybox"); err != nil {
		t.Skip("the test containers need a static busybox: apt-get install busybox-static")
	}
}

func newHost(t testing.TB, change func(*Deps)) *host {
	t.Helper()
	needsRoot(t)
	h := &host{t: t, dir: t.TempDir(), api: fake.NewClientset(), change: change}
	tokens(h.api)
	h.open()
	t.Cleanup(h.destroy)
	if _, err := h.images.Import(t.Context(), bytes.NewReader(busyboxArchive(t))); err != nil {
		t.Fatal(err)
	}
	h.start()
	return h
}

func (h *host) log() *slog.Logger {
	return slog.New(slog.NewTextHandler(testLog{h.t}, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

type testLog struct{ t testing.TB }

func (l testLog) Write(p []byte) (int, error) {
	if l.t.Context().Err() == nil {
		l.t.Logf("%s", bytes.TrimSpace(p))
	}
	return len(p), nil
}

// open opens what the kubelet works with, as a new process would.
func (h *host) open() {
	h.t.Helper()
	var err error
	must := func(e error) {
		h.t.Helper()
		if e != nil {
			h.t.Fatal(e)
		}
	}
	h.ledger, err = ledger.Open(filepath.Join(h.dir, "ledger.db"))
	must(err)
	h.engine, err = runtime.Open(runtime.Config{Dir: filepath.Join(h.dir, "run"), HelperPath: helperPath, Ledger: h.ledger, Log: h.log(),
		CgroupRoot: testCgroups + "/" + filepath.Base(filepath.Dir(h.dir)) + "-" + fmt.Sprint(os.Getpid()), Clock: supervision.RealClock()})
	must(err)
	h.images, err = images.Open(filepath.Join(h.dir, "images"), h.ledger, h.log())
	must(err)
	bridge, prefix := network.Names(h.dir)
	h.network, err = network.Open(network.Config{Bridge: bridge, Prefix: prefix, PodCIDR: netip.MustParsePrefix("10.244.0.0/24"), Ledger: h.ledger, Log: h.log()})
	must(err)
}

// start starts the kubelet.
func (h *host) start() {
	h.t.Helper()
	var err error
	h.sys, err = supervision.New(supervision.Config{Log: h.log()})
	if err != nil {
		h.t.Fatal(err)
	}
	d := Deps{Config: Config{NodeName: testNode, DataDir: h.dir, NodeIPs: []netip.Addr{netip.MustParseAddr("10.244.0.1")}, ListenAddr: "127.0.0.1:0"},
		Client: h.api, Runtime: h.engine, Images: h.images, Network: h.network, Ledger: h.ledger, Log: h.log()}
	if h.change != nil {
		h.change(&d)
	}
	h.kubelet = New(d)
	root := catalog.Row("node")
	root.Children = []supervision.Spec{h.kubelet.Spec()}
	if err := h.sys.Start(root); err != nil {
		h.t.Fatal(err)
	}
}

// stop ends the kubelet and closes everything, as the end of the process would; containers go on.
func (h *host) stop() {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if r := h.sys.Stop(ctx); len(r.Unstopped) > 0 {
		h.t.Errorf("not stopped: %v", r.Unstopped)
	}
	h.network.Close()
	h.images.Close()
	h.engine.Close()
	h.ledger.Close()
}

func (h *host) destroy() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	h.sys.Stop(ctx)
	if err := h.engine.RemoveAll(ctx); err != nil {
		h.t.Errorf("cannot clean up: %v", err)
	}
	if err := h.network.Teardown(ctx); err != nil {
		h.t.Errorf("cannot clean up: %v", err)
	}
	for _, p := range h.kubelet.s.table.UIDs() {
		_ = h.kubelet.s.env.Volumes.Purge(p)
	}
	h.network.Close()
	h.images.Close()
	h.engine.Close()
	h.ledger.Close()
}

// pod makes a pod of one container that runs a shell script.
func shell(name, script string) *v1.Pod {
	zero := int64(2)
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name + "-uid")},
		Spec: v1.PodSpec{NodeName: testNode, TerminationGracePeriodSeconds: &zero, RestartPolicy: v1.RestartPolicyAlways,
			Containers: []v1.Container{{Name: "main", Image: testImage, ImagePullPolicy: v1.PullIfNotPresent, Command: []string{"sh", "-c", script},
				TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: v1.TerminationMessageReadFile}}},
	}
}

func (h *host) create(p *v1.Pod) *v1.Pod {
	h.t.Helper()
	p, err := h.api.CoreV1().Pods(p.Namespace).Create(context.Background(), p, metav1.CreateOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

func (h *host) get(name string) *v1.Pod {
	p, err := h.api.CoreV1().Pods("default").Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return p
}

// wait waits until the pod is as wanted; nil stands for a pod that is gone.
func (h *host) wait(name, what string, ok func(*v1.Pod) bool) *v1.Pod {
	h.t.Helper()
	end := time.Now().Add(patience)
	for {
		p := h.get(name)
		if ok(p) {
			return p
		}
		if time.Now().After(end) {
			status := []byte("gone")
			if p != nil {
				status, _ = json.MarshalIndent(p.Status, "", " ")
			}
			h.t.Fatalf("pod %s is not %s:\n%s\nevents:\n%s", name, what, status, h.events(name))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (h *host) events(name string) string {
	list, _ := h.api.CoreV1().Events("default").List(context.Background(), metav1.ListOptions{})
	var b strings.Builder
	for _, e := range list.Items {
		if e.InvolvedObject.Name == name {
			fmt.Fprintf(&b, "%s %s %dx %s\n", e.Type, e.Reason, e.Count, e.Message)
		}
	}
	return b.String()
}

func isReady(p *v1.Pod) bool {
	if p == nil {
		return false
	}
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}

func (h *host) running(name string) *v1.Pod {
	h.t.Helper()
	return h.wait(name, "ready", isReady)
}

// remove marks the pod as an API server does on delete, and waits until the kubelet has deleted it.
func (h *host) remove(name string, grace int64) {
	h.t.Helper()
	h.mark(name, grace)
	h.wait(name, "gone", func(p *v1.Pod) bool { return p == nil })
}

func (h *host) mark(name string, grace int64) {
	h.t.Helper()
	p := h.get(name)
	if p == nil {
		h.t.Fatalf("no pod %s", name)
	}
	p = p.DeepCopy()
	now := metav1.Now()
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &now, &grace
	if _, err := h.api.CoreV1().Pods("default").Update(context.Background(), p, metav1.UpdateOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

// busyboxArchive is a docker archive of an image that holds a static busybox.
func busyboxArchive(t testing.TB) []byte {
	t.Helper()
	layer := tarOf(t, func(w *tar.Writer) {
		bin, err := os.ReadFile(busybox(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []string{"bin/", "tmp/", "etc/", "www/"} {
			add(t, w, tar.Header{Name: d, Typeflag: tar.TypeDir, Mode: 0o777}, nil)
		}
		add(t, w, tar.Header{Name: "bin/busybox", Mode: 0o755}, bin)
		for _, link := range strings.Fields("sh cat echo sleep httpd ls id env touch true false kill stat mount test head tail wc seq dd mkdir rm hostname ps nc trap tr awk sed grep pwd date readlink") {
			add(t, w, tar.Header{Name: "bin/" + link, Typeflag: tar.TypeSymlink, Linkname: "busybox", Mode: 0o777}, nil)
		}
		add(t, w, tar.Header{Name: "etc/passwd", Mode: 0o644}, []byte("root:x:0:0:root:/root:/bin/sh\nweb:x:33:33:web:/www:/bin/sh\n"))
		add(t, w, tar.Header{Name: "etc/group", Mode: 0o644}, []byte("root:x:0:\nweb:x:33:\nextra:x:44:web\n"))
		add(t, w, tar.Header{Name: "www/index.html", Mode: 0o644}, []byte("hello from the pod\n"))
	})
	sum := sha256.Sum256(layer)
	config, _ := json.Marshal(map[string]any{"architecture": "amd64", "os": "linux",
		"config": map[string]any{"Env": []string{"PATH=/bin"}, "Cmd": []string{"sh"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}}})
	manifest, _ := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": []string{testImage}, "Layers": []string{"layer.tar"}}})
	return tarOf(t, func(w *tar.Writer) {
		add(t, w, tar.Header{Name: "config.json", Mode: 0o644}, config)
		add(t, w, tar.Header{Name: "layer.tar", Mode: 0o644}, layer)
		add(t, w, tar.Header{Name: "manifest.json", Mode: 0o644}, manifest)
	})
}

func busybox(t testing.TB) string {
	t.Helper()
	p, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("the test containers need a static busybox: apt-get install busybox-static")
	}
	return p
}

func tarOf(t testing.TB, fill func(*tar.Writer)) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	fill(w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func add(t testing.TB, w *tar.Writer, h tar.Header, data []byte) {
	t.Helper()
	h.Size = int64(len(data))
	if err := w.WriteHeader(&h); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(w, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
}
