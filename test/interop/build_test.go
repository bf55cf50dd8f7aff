package interop

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// packages are the programs that can be built.
var packages = map[string]string{
	"etcdctl":        "go.etcd.io/etcd/etcdctl/v3",
	"etcdutl":        "go.etcd.io/etcd/etcdutl/v3",
	"kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
}

// built are the programs that this process has built, or found to be up to date.
var built = map[string]func() (string, error){}

func init() {
	for name := range packages {
		built[name] = sync.OnceValues(func() (string, error) { return build(name) })
	}
}

// tool is the path of an upstream program.
func tool(t testing.TB, name string) string {
	t.Helper()
	begin := time.Now()
	path, err := built[name]()
	must(t, err)
	if took := time.Since(begin); took > 5*time.Second {
		t.Logf("%s was built in %s", name, took.Round(time.Second))
	}
	return path
}

func build(name string) (path string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path = filepath.Join(cache, "nodeactor-interop", name)
	cmd := exec.Command("go", "build", "-p", "2", "-buildvcs=false", "-ldflags", versionFlags(), "-o", path, packages[name])
	cmd.Dir = "tools"
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build %s: %w\n%s", name, err, out)
	}
	return path, nil
}

// versionFlags make Kubernetes' programs say which version they are of, which is how they decide what they serve.
func versionFlags() string {
	var flags []string
	for _, p := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for name, value := range map[string]string{"gitVersion": kubeVersion, "gitMajor": "1", "gitMinor": "37"} {
			flags = append(flags, "-X "+p+"."+name+"="+value)
		}
	}
	return strings.Join(append(flags, "-s -w"), " ")
}

// kubeVersion is that of tools/go.mod.
const kubeVersion = "v1.37.2"

// ctl is etcdctl with the certificate of a client.
type ctl struct {
	t   testing.TB
	bin string
	env []string
}

// answer is what a program said.
type answer struct {
	out, err string
	code     int
}

func (c *ctl) command(args ...string) *exec.Cmd {
	cmd := exec.Command(c.bin, args...)
	cmd.Env = append(os.Environ(), c.env...)
	return cmd
}

// try runs etcdctl with what it reads from its standard input.
func (c *ctl) try(input string, args ...string) answer {
	c.t.Helper()
	cmd := c.command(args...)
	cmd.Stdin = strings.NewReader(input)
	return finish(c.t, cmd)
}

func finish(t testing.TB, cmd *exec.Cmd) answer {
	t.Helper()
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("cannot run %s: %v", cmd, err)
	}
	return answer{out.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// run is try for what must succeed.
func (c *ctl) run(args ...string) string {
	c.t.Helper()
	a := c.try("", args...)
	if a.code != 0 {
		c.t.Fatalf("etcdctl %s: exit code %d: %s", strings.Join(args, " "), a.code, a.err)
	}
	return a.out
}

// refused is try for what must be refused with a reason that has the words.
func (c *ctl) refused(words, input string, args ...string) {
	c.t.Helper()
	a := c.try(input, args...)
	if a.code == 0 || !strings.Contains(a.err, words) {
		c.t.Errorf("etcdctl %s: exit code %d, said %q %q, wanted %q", strings.Join(args, " "), a.code, a.out, a.err, words)
	}
}

// blob is a byte slice that etcdctl writes in base 64.
type blob string

// UnmarshalJSON implements json.Unmarshaler.
func (b *blob) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	*b = blob(raw)
	return err
}

// header, keyValue and the like are etcdctl's answers with -w json.
type header struct {
	Revision int64 `json:"revision"`
}

type keyValue struct {
	Key     blob  `json:"key"`
	Value   blob  `json:"value"`
	Create  int64 `json:"create_revision"`
	Mod     int64 `json:"mod_revision"`
	Version int64 `json:"version"`
	Lease   int64 `json:"lease"`
}

type rangeAnswer struct {
	Header header     `json:"header"`
	KVs    []keyValue `json:"kvs"`
	More   bool       `json:"more"`
	Count  int64      `json:"count"`
}

// get is `etcdctl get` with these arguments.
func (c *ctl) get(args ...string) rangeAnswer {
	c.t.Helper()
	var a rangeAnswer
	c.decode(c.run(append([]string{"get", "-w", "json"}, args...)...), &a)
	return a
}

func (c *ctl) decode(text string, into any) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		c.t.Fatalf("%v in %q", err, text)
	}
}
