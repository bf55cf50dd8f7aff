package strategy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// start is when all tests begin.
var start = TimeOf(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))

// item is a set as the catalog stores it.
type item struct {
	Durable
	replicas []Replica
	hydrated map[ReplicaID]bool
	objects  bool
	refresh  *RefreshInputs
	// spec is what the user declared last, version counts all changes of Durable.
	spec    Spec
	version int
	// unplaced tells that a replica finds no place.
	unplaced bool
}

// put changes the durable state.
func (i *item) put(d Durable) {
	if i.Durable != d {
		i.Durable = d
		i.version++
	}
}

func (i *item) named(name string) *Replica {
	for n := range i.replicas {
		if i.replicas[n].Name == name {
			return &i.replicas[n]
		}
	}
	return nil
}

func (i *item) remove(id ReplicaID) {
	delete(i.hydrated, id)
	i.replicas = slices.DeleteFunc(i.replicas, func(r Replica) bool { return r.ID == id })
}

// count tells how many replicas have the shape, and how many of them are hydrated.
func (i *item) count(shape Shape) (all, hydrated int) {
	for _, r := range i.replicas {
		if r.Shape == shape {
			all++
			if i.hydrated[r.ID] {
				hydrated++
			}
		}
	}
	return all, hydrated
}

// done is a batch and what became of it.
type done struct {
	Batch
	Outcome Outcome
}

// catalog is a world in memory: it compares before it appends.
type catalog struct {
	now   Time
	items map[SetID]*item
	// room is how much all replicas may weigh, negative without a limit.
	room int
	next int
	// calls counts what was asked, probes those of them that ask for signals of each set.
	calls  map[string]int
	probes map[SetID]int
	log    []done
	audits []string
	// between, unless it is nil, is called at the begin of each call, and judge before and after a batch was applied.
	between func(call string)
	judge   func(b Batch, apply func())
	// fails makes calls fail by "call set".
	fails map[string]error
}

func newCatalog() *catalog {
	return &catalog{
		now: start, items: map[SetID]*item{}, room: -1, calls: map[string]int{}, probes: map[SetID]int{}, fails: map[string]error{},
	}
}

func (c *catalog) call(name string, set SetID) error {
	c.calls[name]++
	switch name {
	case "hydrated", "objects", "refresh":
		c.probes[set]++
	}
	if c.between != nil {
		c.between(name)
	}
	return c.fails[strings.TrimSpace(name+" "+string(set))]
}

// add makes a set that realizes its spec.
func (c *catalog) add(id SetID, spec Spec) *item {
	spec.Generation = 1
	d, err := Begin("uid-"+string(id), spec)
	if err != nil {
		panic(err)
	}
	i := &item{Durable: d, hydrated: map[ReplicaID]bool{}, objects: true, spec: spec}
	c.items[id] = i
	return i
}

// change is what a user does: it changes the spec, which is folded in at once.
func (c *catalog) change(id SetID, edit func(*Spec)) (FoldKind, error) {
	i := c.items[id]
	spec := i.spec
	edit(&spec)
	spec.Generation++
	folded, err := Fold(i.Durable, spec, c.now)
	if err != nil {
		return 0, err
	}
	i.spec = spec
	i.put(folded.Durable)
	if audit, ok := folded.Audit.Get(); ok {
		c.audits = append(c.audits, fmt.Sprintf("%s %s", id, audit))
	}
	return folded.Kind, nil
}

// hydrate makes the replicas with the names hydrated, all of the set without names.
func (c *catalog) hydrate(id SetID, names ...string) {
	i := c.items[id]
	for _, r := range i.replicas {
		if len(names) == 0 || slices.Contains(names, r.Name) {
			i.hydrated[r.ID] = true
		}
	}
}

func weight(shape Shape) int { return map[byte]int{'S': 1, 'M': 2, 'L': 4}[shape.Size[0]] }

// weight is that of all replicas.
func (c *catalog) weight() int {
	sum := 0
	for _, i := range c.items {
		for _, r := range i.replicas {
			sum += weight(r.Shape)
		}
	}
	return sum
}

func (c *catalog) Now() Time {
	_ = c.call("now", "")
	return c.now
}

func (c *catalog) ManagedSets() ([]SetID, error) {
	err := c.call("sets", "")
	return slices.Collect(maps.Keys(c.items)), err // In any order, which must not matter.
}

func (c *catalog) States(ids []SetID) ([]State, error) {
	if err := c.call("states", ""); err != nil {
		return nil, err
	}
	var states []State
	for _, id := range ids {
		if i, ok := c.items[id]; ok {
			states = append(states, State{ID: id, Durable: i.Durable, Replicas: slices.Clone(i.replicas), NoRoom: i.unplaced})
		}
	}
	return states, nil
}

func (c *catalog) HydratedReplicas(id SetID, ids []ReplicaID) ([]ReplicaID, error) {
	err := c.call("hydrated", id)
	var hydrated []ReplicaID
	if i, ok := c.items[id]; ok {
		hydrated = slices.DeleteFunc(slices.Clone(ids), func(r ReplicaID) bool { return !i.hydrated[r] })
	}
	return hydrated, err
}

func (c *catalog) HasHydratableObjects(id SetID) (bool, error) {
	err := c.call("objects", id)
	i, ok := c.items[id]
	return ok && i.objects, err
}

func (c *catalog) RefreshInputs(id SetID) (*RefreshInputs, error) {
	err := c.call("refresh", id)
	if i, ok := c.items[id]; ok {
		return i.refresh, err
	}
	return nil, err
}

func (c *catalog) Apply(b Batch) (Outcome, error) {
	if err := c.call("apply", b.Set); err != nil {
		return 0, err
	}
	outcome := c.decide(b)
	c.log = append(c.log, done{b, outcome})
	if outcome == Applied {
		apply := func() { c.do(b) }
		if c.judge != nil {
			c.judge(b, apply)
		} else {
			apply()
		}
	}
	return outcome, c.fails["answer "+string(b.Set)]
}

// decide compares and weighs.
func (c *catalog) decide(b Batch) Outcome {
	i, ok := c.items[b.Set]
	if !ok || !b.Expected.Holds(i.Durable) {
		return Rejected
	}
	if c.room < 0 || len(b.Creates) == 0 {
		return Applied
	}
	more := 0
	for _, r := range b.Creates {
		if i.named(r.Name) == nil {
			more += weight(r.Shape)
		}
	}
	for _, d := range b.Drops {
		if slices.ContainsFunc(i.replicas, func(r Replica) bool { return r.ID == d.ID }) {
			more -= weight(d.Shape)
		}
	}
	if c.weight()+more > c.room {
		return Exhausted
	}
	return Applied
}

// do changes the world; whatever has been done before is left as it is.
func (c *catalog) do(b Batch) {
	i := c.items[b.Set]
	i.put(i.With(b.Update))
	for _, d := range b.Drops {
		i.remove(d.ID)
	}
	for _, r := range b.Creates {
		if i.named(r.Name) == nil {
			c.next++
			i.replicas = append(i.replicas, Replica{ID: ReplicaID(fmt.Sprint("id", c.next)), Name: r.Name, Shape: r.Shape})
		}
	}
	for _, audit := range b.Audits() {
		c.audits = append(c.audits, fmt.Sprintf("%s %s", b.Set, audit))
	}
}

// applied is the log since the last call.
func (c *catalog) applied() []done {
	log := c.log
	c.log = nil
	return log
}

// since is the audit records since the last call.
func (c *catalog) since() []string {
	audits := c.audits
	c.audits = nil
	return audits
}

// show tells the replicas of a set: their names, shapes and, by a star, that they are hydrated.
func (c *catalog) show(id SetID) string {
	i := c.items[id]
	var words []string
	for _, r := range sortReplicas(i.replicas) {
		word := r.Name + ":" + r.Shape.String()
		if i.hydrated[r.ID] {
			word += "*"
		}
		words = append(words, word)
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, " ")
}

// table is what many tests begin with: a kernel whose alarm panics, and a catalog with set db.
type table struct {
	*testing.T
	*catalog
	kernel   *Kernel
	settings Settings
	db       *item
}

func size(n int, name string) Config {
	return Config{ReplicationFactor: n, Shape: Shape{Size: name}}
}

func begin(t *testing.T, spec Spec) *table {
	t.Helper()
	kernel := New()
	kernel.Alarm = func(c Conflict) { panic(c) }
	c := newCatalog()
	return &table{T: t, catalog: c, kernel: kernel, settings: Settings{BurstEnabled: true}, db: c.add("db", spec)}
}

// steady begins with replicas that are all hydrated.
func steady(t *testing.T, spec Spec) *table {
	t.Helper()
	b := begin(t, spec)
	b.tick()
	b.hydrate("db")
	b.tick()
	b.applied()
	b.since()
	return b
}

func (b *table) tick() Report {
	b.Helper()
	report, err := b.kernel.Tick(b.catalog, b.settings)
	if err != nil {
		b.Fatal(err)
	}
	return report
}

// replicas fails unless db has these.
func (b *table) replicas(want string) {
	b.Helper()
	if got := b.show("db"); got != want {
		b.Fatalf("replicas %q, want %q", got, want)
	}
}

// realized fails unless db has this config.
func (b *table) realized(want Config) {
	b.Helper()
	if b.db.Config != want {
		b.Fatalf("realized %s, want %s", b.db.Config, want)
	}
}

// told fails unless these are the audit records since the last look.
func (b *table) told(want ...string) {
	b.Helper()
	if got := b.since(); !slices.Equal(got, want) {
		b.Fatalf("audit records\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// quiet fails unless two ticks apply nothing.
func (b *table) quiet() {
	b.Helper()
	b.applied()
	for range 2 {
		b.tick()
	}
	if log := b.applied(); len(log) > 0 {
		b.Fatalf("a tick without a reason applied %+v", log)
	}
}

// status fails unless the record has it.
func (b *table) status(want Status) {
	b.Helper()
	if r, _ := b.db.Reconfiguration.Get(); r.Status != want {
		b.Fatalf("the reconfiguration is %s, want %s", r.Status, want)
	}
}

// to asks for another config.
func (b *table) to(config Config, wait Wait) FoldKind {
	b.Helper()
	kind, err := b.change("db", func(s *Spec) { s.Config, s.Wait = config, wait })
	if err != nil {
		b.Fatal(err)
	}
	return kind
}

var errBroken = errors.New("broken")

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}
