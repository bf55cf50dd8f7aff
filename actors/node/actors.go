package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nodeactor/nodeactor/actors/health"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

const (
	// actorsPath, policiesPath and ringPath are where the local socket shows the tree, what is
	// done about faults, and the faults.
	actorsPath   = "/actors"
	policiesPath = "/policies"
	ringPath     = "/faults"
	// longestMeasure bounds one measurement of CPU shares.
	longestMeasure = 30 * time.Second
	// candidates is how many paths are compared with one that does not exist.
	candidates = 5000
)

// The kinds of an actor as people see them.
const (
	KindSupervisor = "supervisor"
	KindPool       = "pool"
	KindWorker     = "worker"
)

// ActorLine is what can be seen of one actor. A pool whose members are not listed speaks for
// them, too.
type ActorLine struct {
	Path       string `json:"path"`
	Row        string `json:"row"`
	Kind       string `json:"kind"`
	State      string `json:"state"`
	Hung       bool   `json:"hung,omitempty"`
	Generation uint64 `json:"generation"`
	Restarts   int    `json:"restarts"`
	// Since is when the state was entered, NextTry when one that waits starts again.
	Since   *time.Time `json:"since,omitempty"`
	NextTry *time.Time `json:"nextTry,omitempty"`
	// Mailbox is how many messages wait, Handled how many this generation has taken.
	Mailbox int    `json:"mailbox"`
	Handled uint64 `json:"handled"`
	// OldestSeconds is the age of the oldest message that waits.
	OldestSeconds float64 `json:"oldestSeconds"`
	BusyWith      string  `json:"busyWith,omitempty"`
	BusySeconds   float64 `json:"busySeconds,omitempty"`
	Jobs          int     `json:"jobs"`
	// Abandoned is how many generations would not stop and still run, Zombies which.
	Abandoned int          `json:"abandoned,omitempty"`
	Zombies   []ZombieLine `json:"zombies,omitempty"`
	LastFault *FaultLine   `json:"lastFault,omitempty"`
	// CPU is the share of one core, absent when it was not measured.
	CPU   *float64 `json:"cpu,omitempty"`
	Lease string   `json:"lease"`
	// Members counts the members of a pool by state.
	Members map[string]int `json:"members,omitempty"`
}

// ZombieLine is a generation that was left behind and still runs.
type ZombieLine struct {
	Generation uint64    `json:"generation"`
	Since      time.Time `json:"since"`
	// Hash is that of the stack it was left with, Fault what it had failed of.
	Hash  string     `json:"hash,omitempty"`
	Fault *FaultLine `json:"fault,omitempty"`
}

// ActorList is the answer to a look at the tree.
type ActorList struct {
	At time.Time `json:"at"`
	// Note says what could not be found out, or what is wrong with the whole node.
	Note   string      `json:"note,omitempty"`
	Actors []ActorLine `json:"actors"`
}

// ActorQuery says what to look at.
type ActorQuery struct {
	// Path is the actor to begin with; empty is the root.
	Path string
	// All lists the members of every pool; Depth, when it is not negative, what is that many
	// levels below Path, members included.
	All   bool
	Depth int
	// CPU is how long to measure for; zero measures nothing.
	CPU time.Duration
}

// steering shows the running tree to people and lets them restart parts of it.
type steering struct {
	sys *supervision.System
	// note is said above every list.
	note      string
	overrides []catalog.Override
	// lease names the lease an actor holds; "-" is none.
	lease func(path string) string
	// gone ends what would otherwise go on for as long as its reader wants.
	gone context.Context
	log  *slog.Logger
}

// noLease is the answer for every actor of a node that is alone: it shares nothing.
func noLease(string) string { return "-" }

func (s *steering) routes(mux *http.ServeMux) {
	mux.HandleFunc("GET "+actorsPath, s.actors)
	mux.HandleFunc("POST "+actorsPath+"/restart", s.restart)
	mux.HandleFunc("GET "+policiesPath, func(w http.ResponseWriter, _ *http.Request) {
		reply(w, catalog.Describe(s.sys.Spec(), s.overrides), nil)
	})
	mux.HandleFunc("GET "+ringPath, s.faults)
	mux.HandleFunc("GET "+ringPath+"/stack", s.stack)
}

func (s *steering) actors(w http.ResponseWriter, r *http.Request) {
	q, err := parseQuery(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	tree := s.sys.Inspect()
	if _, ok := find(tree.Root, q.Path); !ok {
		http.Error(w, noActor(tree, q.Path), http.StatusNotFound)
		return
	}
	cpu, note, err := s.measure(r.Context(), q.CPU)
	if err != nil {
		reply(w, nil, err)
		return
	}
	if cpu != nil {
		tree = s.sys.Inspect()
	}
	v := &viewer{steering: s, query: q, now: s.sys.Clock().Now(), cpu: cpu, pools: health.Pools(s.sys.Spec())}
	if n, ok := find(tree.Root, q.Path); ok {
		v.add(n, q.Depth, true)
	}
	reply(w, ActorList{v.now, cmp.Or(s.note, note), v.lines}, nil)
}

func parseQuery(r *http.Request) (q ActorQuery, err error) {
	v := r.URL.Query()
	q = ActorQuery{Path: strings.Trim(v.Get("path"), "/"), All: v.Get("all") == "true", Depth: -1}
	if text := v.Get("depth"); text != "" {
		if q.Depth, err = strconv.Atoi(text); err != nil {
			return q, fmt.Errorf("depth %q is not a number", text)
		}
	}
	if text := v.Get("cpu"); text != "" {
		if q.CPU, err = time.ParseDuration(text); err != nil || q.CPU < 0 || q.CPU > longestMeasure {
			return q, fmt.Errorf("cpu %q is not a time up to %s", text, longestMeasure)
		}
	}
	return q, nil
}

// find returns the node at a path; an empty one is the root.
func find(n supervision.Node, path string) (supervision.Node, bool) {
	if path == "" || n.Path == path {
		return n, n.Path != ""
	}
	if !strings.HasPrefix(path, n.Path+"/") {
		return n, false
	}
	for _, c := range n.Children {
		if found, ok := find(c, path); ok {
			return found, true
		}
	}
	return n, false
}

// noActor says that a path does not exist and which one may have been meant.
func noActor(tree supervision.Tree, path string) string {
	var paths []string
	tree.Walk(func(n supervision.Node) bool {
		paths = append(paths, n.Path)
		return len(paths) < candidates
	})
	hint := catalog.DidYouMean(path, paths)
	return fmt.Sprintf("there is no actor %s%s", path, cmp.Or(hint, "; nodeactor tree lists them"))
}

// viewer turns nodes into lines.
type viewer struct {
	*steering
	query ActorQuery
	now   time.Time
	cpu   map[string]float64
	pools map[string]bool
	lines []ActorLine
}

// add lists a node and what is below it, down to depth when that is not negative. Members
// of a pool are listed where they were asked for; otherwise the pool speaks for them.
func (v *viewer) add(n supervision.Node, depth int, first bool) {
	line, pool := v.line(n), v.pools[n.Path]
	open := depth > 0 || depth < 0 && (!pool || first && v.query.Path != "" || v.query.All)
	if pool {
		line.Members = map[string]int{}
		for _, m := range n.Children {
			line.Members[m.State.String()]++
			if !open {
				line.take(v.line(m))
			}
		}
	}
	v.lines = append(v.lines, line)
	for _, c := range n.Children {
		if open {
			v.add(c, depth-1, false)
		}
	}
}

func (v *viewer) line(n supervision.Node) ActorLine {
	l := ActorLine{
		Path: n.Path, Row: n.Row, Kind: KindWorker, State: n.State.String(), Hung: n.Hung, Generation: n.Generation, Restarts: n.Restarts,
		Since: moment(n.Since), NextTry: moment(n.NextTry), Mailbox: n.Mailbox, Handled: n.Handled, OldestSeconds: n.OldestFor.Seconds(),
		BusyWith: n.BusyWith, BusySeconds: n.BusyFor.Seconds(), Jobs: n.Jobs, Abandoned: n.Abandoned, Lease: v.lease(n.Path),
	}
	switch {
	case v.pools[n.Path]:
		l.Kind = KindPool
	case n.Supervisor:
		l.Kind = KindSupervisor
	}
	l.LastFault = lastFault(n.LastFault)
	for _, z := range n.Zombies {
		l.Zombies = append(l.Zombies, ZombieLine{z.Generation, z.Since, z.StackHash, lastFault(z.Fault)})
	}
	if v.cpu != nil {
		share := v.cpu[n.Path]
		l.CPU = &share
	}
	return l
}

func lastFault(f *supervision.Fault) *FaultLine {
	if f == nil {
		return nil
	}
	l := faultLine(*f)
	return &l
}

// moment is a time that may not have come.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// take adds what a member would show to the line of its pool.
func (l *ActorLine) take(m ActorLine) {
	l.Hung = l.Hung || m.Hung
	l.Restarts += m.Restarts
	l.Mailbox += m.Mailbox
	l.Jobs += m.Jobs
	l.Abandoned += m.Abandoned
	l.Handled += m.Handled
	l.OldestSeconds = max(l.OldestSeconds, m.OldestSeconds)
	if m.LastFault != nil && (l.LastFault == nil || m.LastFault.At.After(l.LastFault.At)) {
		l.LastFault = m.LastFault
	}
	if l.CPU != nil && m.CPU != nil {
		*l.CPU += *m.CPU
	}
}

// measure returns the CPU shares by path, or nil when they were not asked for, or cannot be
// had because somebody else has them measured.
func (s *steering) measure(ctx context.Context, d time.Duration) (shares map[string]float64, note string, err error) {
	if d == 0 {
		return nil, "", nil
	}
	shares, err = s.sys.MeasureCPU(ctx, d)
	if errors.Is(err, supervision.ErrMeasuring) {
		return nil, "no CPU shares: somebody else has them measured at the moment", nil
	}
	return shares, "", err
}

// Restarting is the answer to a restart by hand: the generation that has to go.
type Restarting struct {
	Path       string `json:"path"`
	Generation uint64 `json:"generation"`
}

func (s *steering) restart(w http.ResponseWriter, r *http.Request) {
	path, tree := strings.Trim(r.URL.Query().Get("path"), "/"), s.sys.Inspect()
	n, ok := find(tree.Root, path)
	switch {
	case !ok || path == "":
		http.Error(w, noActor(tree, path), http.StatusNotFound)
	case path == tree.Root.Path:
		http.Error(w, "cannot restart "+path+": the root ends only with the process; restart one of its children ("+childPaths(n)+"), or the process", http.StatusConflict)
	default:
		s.log.Warn("restart by hand", "path", path, "generation", n.Generation)
		reply(w, Restarting{path, n.Generation}, s.sys.Restart(path))
	}
}

func childPaths(n supervision.Node) string {
	var paths []string
	for _, c := range n.Children {
		paths = append(paths, c.Path)
	}
	return strings.Join(paths, ", ")
}
