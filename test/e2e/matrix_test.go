package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/nodeactor/nodeactor/actors/node"
	"github.com/nodeactor/nodeactor/supervision/catalog"
	"github.com/nodeactor/nodeactor/supervision/core"
	"github.com/nodeactor/nodeactor/test/faultmatrix/oracle"
	"github.com/nodeactor/nodeactor/test/standin"
)

const (
	// faultsVar set to "all" brings every fault about in every child, not in a few.
	faultsVar = "NODEACTOR_FAULTS"
	// shortHang is how long a message may take here, shortStop a stop: the catalog's windows
	// would make the test last for hours.
	shortHang, shortStop = "3s", "2s"
	// repairLimit bounds one repair on a busy machine.
	repairLimit = 60 * time.Second
)

// aFew are the children that stand for all others where there is little time.
var aFew = []string{"node/store/engine", "node/api/server", "node/api/listeners/listener", "node/controllers/deployment/dispatcher", "node/core/scheduler", "node/kubelet/sync"}

// drill is a node under test whose tree is known.
type drill struct {
	*host
	local *node.LocalClient
	api   *http.Client
	url   string
	// static are the declared children, members of pools excepted.
	static []*standin.Node
	took   map[core.FaultKind][]time.Duration
}

// TestFaultsOfARealNode brings each kind of fault about in the children of a real node: the same
// process heals it, exactly those start anew whom the catalog names, the API answers, and a
// container that runs does not notice.
func TestFaultsOfARealNode(t *testing.T) {
	d := newDrill(t)
	d.apply(demoDeployment("web", 1, ""))
	pod := d.waitPods("web", 1)[0]
	pid, container := d.cmd.Process.Pid, d.containerPID(pod)
	for _, n := range d.subjects() {
		for _, kind := range []core.FaultKind{core.Panic, core.ErrorReturn, core.BindFailure, core.Hang} {
			d.fault(n, kind)
			if t.Failed() {
				return
			}
		}
	}
	after := d.waitPods("web", 1)[0]
	if d.cmd.Process.Pid != pid || after.UID != pod.UID || d.containerPID(after) != container || restarts(after) != 0 {
		t.Errorf("the container of %s did not live through it", pod.Name)
	}
	d.print()
}

func restarts(p corev1.Pod) int { return int(p.Status.ContainerStatuses[0].RestartCount) }

// newDrill starts a node whose windows are short and whose root bears as many faults as the test
// brings about.
func newDrill(t *testing.T) *drill {
	d := &drill{host: newHost(t, 8), took: map[core.FaultKind][]time.Duration{}}
	blueprint, err := node.Blueprint(node.Config{DataDir: t.TempDir(), NodeName: "host-a"}.WithDefaults())
	must(t, err)
	var overrides []catalog.Override
	for _, n := range standin.Declared(&blueprint) {
		switch {
		case n.Member:
			continue
		case n.Spec.Kind == core.Worker:
			overrides = append(overrides, catalog.Override{Path: n.Path, Windows: &catalog.Windows{Hang: shortHang, Stop: shortStop}})
		case n.Spec.Group.Strategy != core.Pool:
			overrides = append(overrides, catalog.Override{Path: n.Path, Restarts: &catalog.Restarts{
				Burst: &catalog.Rate{Max: 500, Within: "1m"}, Sustained: &catalog.Rate{Max: 1000, Within: "1h"},
			}})
		}
		d.static = append(d.static, n)
	}
	config, err := json.Marshal(map[string]any{"faultPolicies": overrides})
	must(t, err)
	file := filepath.Join(d.dir, "drill.yaml")
	must(t, os.WriteFile(file, config, 0o600))
	d.start("--config", file)
	d.importDemo()
	d.local = node.NewLocalClient(filepath.Join(d.dir, node.SocketFile))
	d.connect()
	return d
}

func (d *drill) connect() {
	d.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(d.dir, node.KubeconfigFile))
	must(d.t, err)
	d.api, err = rest.HTTPClientFor(config)
	must(d.t, err)
	d.url = config.Host
}

func (d *drill) subjects() (all []*standin.Node) {
	for _, n := range d.static {
		if n.Spec.Kind == core.Worker && (os.Getenv(faultsVar) == "all" || slices.Contains(aFew, n.Path)) {
			all = append(all, n)
		}
	}
	return all
}

// fault brings one fault about and looks at what comes of it.
func (d *drill) fault(n *standin.Node, kind core.FaultKind) {
	d.t.Helper()
	before := d.generations()
	d.eventually(repairLimit, "the API to take a fault for "+n.Path, func() error { return d.post(n.Path, kind) })
	begin := time.Now()
	want := oracle.OfFault(n, kind)
	d.eventually(repairLimit, fmt.Sprintf("%s to live again after %s", n.Path, kind), func() error { return d.livesAgain(n.Path, before[n.Path]) })
	d.took[kind] = append(d.took[kind], time.Since(begin))
	after := before
	d.eventually(repairLimit, fmt.Sprintf("everything to run after %s of %s", kind, n.Path), func() (err error) { after, err = d.allRun(); return err })
	for _, s := range d.static {
		if moved := after[s.Path] - before[s.Path]; moved != want.Moves[s.Path] {
			d.t.Errorf("%s of %s: %s went from generation %d to %d, not by %d", kind, n.Path, s.Path, before[s.Path], after[s.Path], want.Moves[s.Path])
		}
	}
	d.eventually(repairLimit, "the API to answer", func() error { return d.get("/readyz") })
	select {
	case err := <-d.exited:
		d.t.Fatalf("the node ended: %v", err)
	default:
	}
}

// post asks the node for a fault.
func (d *drill) post(path string, kind core.FaultKind) error {
	return d.call(http.MethodPost, "/debug/faults?path="+path+"&kind="+kind.String())
}

func (d *drill) get(path string) error { return d.call(http.MethodGet, path) }

func (d *drill) call(method, path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, d.url+path, bytes.NewReader(nil))
	if err != nil {
		return err
	}
	resp, err := d.api.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s: %s", method, path, resp.Status)
	}
	return nil
}

// look reads the tree through the local socket.
func (d *drill) look(path string, depth int) ([]node.ActorLine, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	list, err := d.local.Actors(ctx, node.ActorQuery{Path: path, Depth: depth})
	return list.Actors, err
}

func (d *drill) livesAgain(path string, old uint64) error {
	lines, err := d.look(path, 0)
	if err != nil {
		return err
	}
	if len(lines) != 1 || lines[0].Generation <= old || !strings.EqualFold(lines[0].State, core.Running.String()) {
		return notYet("%+v", lines)
	}
	return nil
}

// allRun reads the generations of all children, which have to run.
func (d *drill) allRun() (map[string]uint64, error) {
	lines, err := d.look("", -1)
	if err != nil {
		return nil, err
	}
	all := map[string]uint64{}
	for _, l := range lines {
		if !strings.EqualFold(l.State, core.Running.String()) {
			return nil, notYet("%s is %s", l.Path, l.State)
		}
		all[l.Path] = l.Generation
	}
	return all, nil
}

// generations waits for everything to run.
func (d *drill) generations() (all map[string]uint64) {
	d.t.Helper()
	d.eventually(repairLimit, "everything to run", func() (err error) { all, err = d.allRun(); return err })
	return all
}

// print shows the times from the fault to the child running again.
func (d *drill) print() {
	for kind := range core.NumFaultKinds {
		all := d.took[kind]
		slices.Sort(all)
		var sum time.Duration
		for _, took := range all {
			sum += took
		}
		if len(all) > 0 {
			d.t.Logf("%-12s repaired %d times in %v on average, at most %v", kind, len(all), (sum / time.Duration(len(all))).Round(time.Millisecond), all[len(all)-1].Round(time.Millisecond))
		}
	}
}
