package services

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/nftables"
	v1 "k8s.io/api/core/v1"
)

// newTable is a table in an empty namespace, without pods.
func newTable(t testing.TB) *world {
	t.Helper()
	enterNewNode(t)
	w := &world{t: t, plan: NewPlanner(Node{Name: thisNode}), table: openTable(t)}
	w.resync()
	return w
}

func (w *world) resync() Found {
	w.t.Helper()
	elements, picks := w.plan.Desired()
	found, err := w.table.Resync(bounded(w.t), elements, picks)
	w.must(err)
	return found
}

// fill sets a sticky Service with a port of the node, one with a Local policy and one without endpoints.
func (w *world) fill() {
	w.t.Helper()
	w.set(service("web", "10.96.0.1", nodePort(30001), stickyFor(60)), slice(ready80("10.244.0.2"), ready80("10.244.0.3")))
	w.set(service("near", "10.96.0.2", nodePort(30002), externalLocal), slice(ready80("10.244.0.2"), elsewhere("10.244.1.3")))
	w.set(service("none", "10.96.0.3"), slice())
	w.set(service("far", "10.96.0.4", internalLocal), slice(elsewhere("10.244.1.3")))
}

// nft runs the administrator's tool, as somebody else would.
func nft(t testing.TB, command string) string {
	t.Helper()
	out, err := exec.Command("nft", strings.Fields(command)...).CombinedOutput()
	if err != nil {
		t.Fatalf("nft %s: %v: %s", command, err, out)
	}
	return string(out)
}

func needNft(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("the nft tool is not installed; it plays somebody else who changes the table")
	}
}

func TestResyncLeavesARightTableAlone(t *testing.T) {
	w := newTable(t)
	w.fill()
	if found := w.resync(); !found.Clean() {
		t.Errorf("found %+v", found)
	}
	again := openTable(t)
	elements, picks := w.plan.Desired()
	if found, err := again.Resync(bounded(t), elements, picks); err != nil || !found.Clean() {
		t.Errorf("the next process found %+v: %v", found, err)
	}
}

func TestNextProcessAdoptsTheSlots(t *testing.T) {
	w := newTable(t)
	a, b, c := ready80("10.244.0.2"), ready80("10.244.0.3"), ready80("10.244.0.4")
	s := service("web", "10.96.0.1", nodePort(30001), stickyFor(60))
	w.set(s, slice(c))
	w.set(s, slice(b, c))
	w.set(s, slice(a, b, c))
	w.set(s, slice(a, b))
	next := openTable(t)
	slots, err := next.Slots(bounded(t))
	w.must(err)
	p := NewPlanner(Node{Name: thisNode})
	p.Adopt(slots)
	p.Set(Name{s.Namespace, s.Name}, s, parts(slice(a, b)))
	elements, picks := p.Desired()
	if found, err := next.Resync(bounded(t), elements, picks); err != nil || !found.Clean() {
		t.Errorf("found %+v: %v", found, err)
	}
	w.must(next.Remove(bounded(t)))
	if slots, err := next.Slots(bounded(t)); err != nil || len(slots) != 0 {
		t.Errorf("without a table: %v %v", slots, err)
	}
}

func TestResyncRepairsWhatSomebodyElseChanged(t *testing.T) {
	needNft(t)
	const table = "ip natest_services"
	for name, c := range map[string]struct {
		command string
		rebuilt bool
	}{
		"element removed":  {"delete element " + table + " fronts { 10.96.0.1 . tcp . 80 }", false},
		"element added":    {"add element " + table + " fronts { 10.96.9.9 . tcp . 80 : drop }", false},
		"hairpins flushed": {"flush set " + table + " hairpins", false},
		"backends flushed": {"flush map " + table + " backends", false},
		"rule added":       {"add rule " + table + " postrouting counter", true},
		"rules flushed":    {"flush chain " + table + " services", true},
		"pick changed":     {"insert rule " + table + " pick-cluster-2-sticky-60 drop", true},
		"chain added":      {"add chain " + table + " mine", true},
		"set added":        {"add set " + table + " mine { type ipv4_addr ; }", true},
		"table removed":    {"delete table " + table, true},
		"table flushed":    {"flush table " + table, true},
		"everything gone":  {"flush ruleset", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTable(t)
			w.fill()
			nft(t, c.command)
			found := w.resync()
			if found.Clean() || (found.Rebuilt != "") != c.rebuilt {
				t.Errorf("found %+v", found)
			}
			if found := w.resync(); !found.Clean() {
				t.Errorf("the second time found %+v", found)
			}
		})
	}
}

// Somebody who debugs a node lists its rules. Releases of the tool up to 1.0.6 abort on values that go from one map into
// the key of another.
func TestAdministratorCanListTheTable(t *testing.T) {
	needNft(t)
	w := newTable(t)
	w.set(service("web", "10.96.0.1", nodePort(30001)), slice(ready80("10.244.0.2"), ready80("10.244.0.3")))
	w.set(service("none", "10.96.0.3"), slice())
	w.set(service("sticky", "10.96.0.4", nodePort(30004), stickyFor(60)), slice(ready80("10.244.0.2"), ready80("10.244.0.3")))
	got := nft(t, "list table ip natest_services")
	for _, want := range []string{
		"ip daddr . meta l4proto . th dport vmap @fronts",
		"fib daddr type local meta l4proto . th dport vmap @nodeports",
		"dnat ip to ip daddr . meta l4proto . th dport . numgen random mod 2 map @backends",
		"10.96.0.1 . 6 . 80 . 0x00000001 : 10.244.0.3 . 80",
		"10.96.0.3 . 17 . 80 : goto reject",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the listing lacks %q:\n%s", want, got)
		}
	}
}

func TestFailedApplyChangesNothing(t *testing.T) {
	w := newTable(t)
	w.fill()
	bad := Delta{
		Add:    Elements{hairpin(netip.MustParseAddr("10.244.9.9")): ""},
		Remove: []Element{hairpin(netip.MustParseAddr("10.244.8.8"))},
	}
	if err := w.table.Apply(bounded(t), bad); err == nil {
		t.Fatal("an element that is not there was removed")
	}
	if found := w.resync(); !found.Clean() {
		t.Errorf("a part was applied: %+v", found)
	}
}

func TestCallsEndWithTheirContext(t *testing.T) {
	w := newTable(t)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	d := Delta{Add: Elements{hairpin(netip.MustParseAddr("10.244.9.9")): ""}}
	if err := w.table.Apply(over, d); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if found := w.resync(); !found.Clean() {
		t.Errorf("found %+v", found)
	}
	w.must(w.table.Apply(bounded(t), d))
	if found := w.resync(); found.Strange != 1 || found.Rebuilt != "" {
		t.Errorf("found %+v", found)
	}
}

func TestRemoveLeavesOtherTables(t *testing.T) {
	w := newTable(t)
	w.fill()
	conn, err := nftables.New()
	w.must(err)
	conn.AddTable(&nftables.Table{Name: "others", Family: nftables.TableFamilyIPv4})
	w.must(conn.Flush())
	for range 2 {
		w.must(w.table.Remove(bounded(t)))
	}
	tables, err := conn.ListTables()
	w.must(err)
	if len(tables) != 1 || tables[0].Name != "others" {
		t.Errorf("%d tables are left", len(tables))
	}
}

func TestOpenRefusesBadConfigurations(t *testing.T) {
	six := netip.MustParsePrefix("fd00::/64")
	for name, cfg := range map[string]Config{
		"no name": {}, "space": {Table: "a b"}, "long": {Table: "a" + strings.Repeat("b", maxTableName)},
		"two bits": {Table: "a", Mark: 3}, "IPv6 pods": {Table: "a", PodRange: six}, "IPv6 link": {Table: "a", LinkRange: six},
	} {
		if _, err := Open(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

const (
	manyServices  = 1000
	backendsOfOne = 10
)

// many plans 1,000 Services with 10 endpoints each, one port by TCP.
func many(p *Planner) {
	for i := range manyServices {
		s, part := manyService(i, 0)
		p.Set(Name{s.Namespace, s.Name}, s, part)
	}
}

// manyService is the Service with the number i; its last endpoint varies with turn.
func manyService(i, turn int) (*v1.Service, []*discoverySlice) {
	s := service(fmt.Sprint("s", i), fmt.Sprintf("10.96.%d.%d", 1+i/250, 1+i%250))
	s.Spec.Ports = s.Spec.Ports[:1]
	part := slice()
	for e := range backendsOfOne - 1 {
		part.Endpoints = append(part.Endpoints, ready80(fmt.Sprintf("10.244.%d.%d", i/25, 1+(i%25)*10+e)))
	}
	part.Endpoints = append(part.Endpoints, ready80(fmt.Sprintf("10.245.%d.%d", i/250, 2+2*(i%100)+turn%2)))
	return s, []*discoverySlice{part}
}

func BenchmarkUpdateOneEndpointOf1000x10(b *testing.B) {
	w := newTable(b)
	many(w.plan)
	w.resync()
	turn := 0
	for b.Loop() {
		turn++
		s, parts := manyService(500, turn)
		w.set(s, parts...)
	}
}

func BenchmarkResync1000x10(b *testing.B) {
	w := newTable(b)
	many(w.plan)
	w.resync()
	for b.Loop() {
		if found := w.resync(); !found.Clean() {
			b.Fatalf("%+v", found)
		}
	}
}

func BenchmarkRebuild1000x10(b *testing.B) {
	w := newTable(b)
	many(w.plan)
	elements, picks := w.plan.Desired()
	for b.Loop() {
		w.must(w.table.rebuild(bounded(b), elements, picks))
	}
}

func TestThousandServicesAreReadBackAsWritten(t *testing.T) {
	w := newTable(t)
	many(w.plan)
	if found := w.resync(); found.Rebuilt == "" {
		t.Errorf("found %+v", found)
	}
	if found := w.resync(); !found.Clean() {
		t.Errorf("found %+v", found)
	}
	s, parts := manyService(500, 1)
	w.set(s, parts...)
	if found := w.resync(); !found.Clean() {
		t.Errorf("after one change found %+v", found)
	}
}
