package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/nodeactor/nodeactor/test/daemon"
)

const (
	// defaultCases is what the test command runs.
	defaultCases = 30
	// manyCases is from how many on the store is grown first, so that its log does not go back to its beginning.
	manyCases = 100
	// grownRevision is the revision from which a store is grown: the log has been cut by then.
	grownRevision = 15000
	// verdictLimit is how long a start on damaged files may take to end either way.
	verdictLimit = 30 * time.Second
	// fallBackEvery is for how many read-only nodes one is started again with the loss accepted.
	fallBackEvery = 3
)

// stateFiles are the files that a start depends on, relative to the data directory.
func stateFiles(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasSuffix(path, "ock") || strings.HasSuffix(path, "LOCK") {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err == nil && !strings.HasPrefix(name, "bin/") {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// laboratory holds what the cases of damage are made from.
type laboratory struct {
	*node
	// pristine is the data directory of a node that was killed, old one of the same node some time before.
	pristine, old string
	all           []*writer
	files         []string
	readOnly      int
}

// newLaboratory runs a node for a while, grown until its log was cut, and kills it.
func newLaboratory(t *testing.T, grown bool) *laboratory {
	n := newNode(t)
	l := &laboratory{node: n, pristine: n.dir + daemon.CopySuffix, old: filepath.Join(t.TempDir(), "old"), all: newWriters(8)}
	t.Cleanup(func() { replace(t, l.pristine, n.dir); os.RemoveAll(l.pristine) })
	l.run(t, chore{"snapshot", save}, false)
	l.thinSnapshots()
	replace(t, n.dir, l.old)
	l.run(t, chore{}, grown)
	replace(t, n.dir, l.pristine)
	l.files = stateFiles(t, l.pristine)
	return l
}

// run starts the node, lets the writers write for a while and kills it.
func (l *laboratory) run(t *testing.T, beside chore, grow bool) {
	t.Helper()
	l.launch()
	client, err := l.ready()
	if err != nil {
		t.Fatal(err)
	}
	if !grow {
		disturb(l.node, client, l.all, time.Second, beside)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	many := newWriters(writers)
	for _, w := range many {
		w.name = "grow-" + w.name
		go w.write(ctx, client)
	}
	for highestNow(client) < grownRevision && ctx.Err() == nil {
		time.Sleep(100 * time.Millisecond)
	}
	disturb(l.node, client, l.all, time.Second, beside)
}

func highestNow(c kubernetes.Interface) uint64 {
	list, err := c.CoreV1().Namespaces().List(context.Background(), metav1.ListOptions{Limit: 1})
	if err != nil {
		return 0
	}
	return revisionOf(list.ResourceVersion)
}

// TestP21_DamagedFiles damages one state file of a node that was killed, and starts it: it starts with everything that was acknowledged, or
// only answers reads and says which file is damaged and what to do, or refuses with the same. It never hangs and never panics.
func TestP21_DamagedFiles(t *testing.T) {
	cases, seed := int(setting("CRASH_CASES", defaultCases)), setting("CRASH_SEED", uint64(time.Now().UnixNano()))
	t.Logf("CRASH_CASES=%d CRASH_SEED=%d", cases, seed)
	if cases < manyCases {
		t.Run("young", func(t *testing.T) { damageCases(t, false, cases, seed) })
		return
	}
	t.Run("young", func(t *testing.T) { damageCases(t, false, cases/2, seed) })
	t.Run("grown", func(t *testing.T) { damageCases(t, true, cases-cases/2, seed) })
}

func damageCases(t *testing.T, grown bool, cases int, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	l := newLaboratory(t, grown)
	outcomes, names, began := map[string]int{}, harmNames(), time.Now()
	for i := range cases {
		// Every second case is about the database or the log, the others about everything.
		file, name := l.choose(i, rnd), names[rnd.IntN(len(names))]
		replace(t, l.pristine, l.dir)
		damage(t, l.dir, l.old, file, name, rnd)
		verdict, err := l.judge(t, file)
		l.kill()
		outcomes[verdict]++
		t.Logf("%s, %s: %s", file, name, verdict)
		if err != nil {
			t.Errorf("case %d: %s, %s: %v", i, file, name, err)
		}
	}
	t.Logf("%d cases in %s: %v", cases, time.Since(began).Round(time.Second), outcomes)
}

func (l *laboratory) choose(i int, rnd *rand.Rand) string {
	if i%2 == 1 {
		return l.files[rnd.IntN(len(l.files))]
	}
	var own []string
	for _, f := range l.files {
		if strings.HasSuffix(f, ".wal") || strings.HasSuffix(f, "snap/db") {
			own = append(own, f)
		}
	}
	return own[i/2%len(own)]
}

// replace makes to a copy of from, holes included.
func replace(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-a", "--sparse=always", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// judge starts the node on its damaged directory.
func (l *laboratory) judge(t *testing.T, file string) (verdict string, err error) {
	l.launch()
	end := time.Now().Add(verdictLimit)
	for time.Now().Before(end) {
		select {
		case <-l.exited:
			code := l.cmd.ProcessState.ExitCode()
			l.cmd = nil
			return "refused", l.refusal(file, code)
		case <-time.After(20 * time.Millisecond):
		}
		client, err := l.client()
		if err != nil {
			continue
		}
		said, err := readyz(client)
		switch {
		case err == nil:
			return l.started(t, client)
		case strings.Contains(said, "[-]store failed: the store "):
			return l.limited(t, client, file, said)
		}
	}
	return "hung", fmt.Errorf("neither started nor refused within %s: %s", verdictLimit, l.tail(5))
}

// readyz is the answer, ready or not.
func readyz(c kubernetes.Interface) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	b, err := c.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Raw()
	return string(b), err
}

func (l *laboratory) started(t *testing.T, client kubernetes.Interface) (verdict string, err error) {
	if lost := verify(t, client, copies(l.all)); len(lost) > 0 {
		return "started with losses", errors.New(strings.Join(lost, "; "))
	}
	if l.grep("was repaired") != "" {
		return "repaired", nil
	}
	return "started", nil
}

// limited judges a node that does not use its store: it says why, refuses writes, and answers reads with something or not at all.
func (l *laboratory) limited(t *testing.T, client kubernetes.Interface, file, said string) (verdict string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	verdict = "read-only"
	if strings.Contains(said, "cannot be read") {
		verdict = "unreadable"
	}
	list, readErr := client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
	_, writeErr := client.CoreV1().ConfigMaps(namespace).Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "refused"}}, metav1.CreateOptions{})
	live := alive(ctx, client)
	switch {
	case !names(said, file):
		return verdict, fmt.Errorf("/readyz does not name the file: %s", said)
	case !strings.Contains(said, "put the file back"):
		return verdict, fmt.Errorf("/readyz does not say what to do: %s", said)
	case verdict == "read-only" && (readErr != nil || len(list.Items) == 0):
		return verdict, fmt.Errorf("a read: %d objects, %w", len(list.Items), readErr)
	case verdict == "unreadable" && !apierrors.IsServiceUnavailable(readErr):
		return verdict, fmt.Errorf("a read: %w", readErr)
	case !apierrors.IsServiceUnavailable(writeErr) || !names(writeErr.Error(), file):
		return verdict, fmt.Errorf("a write: %w", writeErr)
	case live != nil:
		return verdict, fmt.Errorf("/livez: %w", live)
	}
	if l.readOnly++; l.readOnly%fallBackEvery == 0 {
		return l.fallBack(t, verdict, file)
	}
	return verdict, nil
}

// alive waits until /livez passes: a node says that it is not ready before all of it has started.
func alive(ctx context.Context, c kubernetes.Interface) error {
	for {
		err := c.Discovery().RESTClient().Get().AbsPath("/livez").Do(ctx).Error()
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// fallBack starts the node again with the loss accepted: it comes up with less, and at a revision that nobody has seen, or refuses.
func (l *laboratory) fallBack(t *testing.T, before, file string) (verdict string, err error) {
	l.kill()
	l.launch("--accept-data-loss")
	client, err := l.ready()
	if before == "unreadable" {
		if err == nil {
			return "begun anew", errors.New("a store that cannot be read was replaced by an empty one")
		}
		if said := l.tail(1); !names(said, file) || !strings.Contains(said, "nodeactor reset") {
			return "refused", fmt.Errorf("the last line: %s", said)
		}
		return "unreadable, then refused", nil
	}
	if err != nil {
		return "read-only for ever", err
	}
	if l.grep("what was written after") == "" && l.grep("whatever was written after") == "" {
		return "read-only, then fallen back", fmt.Errorf("it does not say what is lost: %s", l.tail(20))
	}
	if now, seen := highestNow(client), highest(l.all); now <= seen {
		return "read-only, then fallen back", fmt.Errorf("the store is at revision %d, acknowledged was %d", now, seen)
	}
	if kept, _ := filepath.Glob(filepath.Join(l.dir, "store.before-restore-*")); len(kept) != 1 {
		return "read-only, then fallen back", fmt.Errorf("the damaged files are kept in %v", kept)
	}
	return "read-only, then fallen back", nil
}

// names tells whether a text names a file, or the directory that it is in and that is not there any more.
func names(text, file string) bool {
	return strings.Contains(text, filepath.Base(file)) || strings.Contains(text, filepath.Base(filepath.Dir(file)))
}

// refusal judges what the daemon said when it ended.
func (l *laboratory) refusal(file string, code int) error {
	b, err := os.ReadFile(l.logPath())
	if err != nil {
		return err
	}
	switch last := l.tail(1); {
	case strings.Contains(string(b), "\ngoroutine "):
		return fmt.Errorf("it panicked: %s", l.tail(30))
	case strings.HasPrefix(file, "store/"):
		return fmt.Errorf("a damaged store ends the node: %s", last)
	case code != 1:
		return fmt.Errorf("the exit code is %d: %s", code, last)
	case !names(last, file):
		return fmt.Errorf("the last line does not name the file: %s", last)
	}
	return nil
}
