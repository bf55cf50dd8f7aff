package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// Limits of what an override may ask for.
const (
	minDelay, maxDelay   = 10 * time.Millisecond, 24 * time.Hour
	minWindow, maxWindow = 100 * time.Millisecond, time.Hour
	minWithin, maxWithin = time.Second, 24 * time.Hour
	maxFactor            = 10
)

// kindNames are the keys of a policy, in the order of the kinds of fault.
var kindNames = [core.NumFaultKinds]string{"panic", "hang", "errorReturn", "bindFailure"}

// reactions are the values of a cell.
var reactions = []string{"restart", "stop", "escalate", "park"}

const (
	allReactions = "restart, stop, escalate or park"
	allKinds     = "panic, hang, errorReturn and bindFailure"
)

// Finding is one thing that is wrong with an override. It is an ErrOverride.
type Finding struct {
	// Source says where the override was written, Target the child or row it is for.
	Source, Target string
	// Text is what is wrong, and what would be right.
	Text string
}

// Error says all of it in one line.
func (f *Finding) Error() string {
	parts := []string{ErrOverride.Error()}
	for _, p := range []string{f.Source, f.Target, f.Text} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, ": ")
}

// Is makes every Finding an ErrOverride.
func (f *Finding) Is(target error) bool { return target == ErrOverride }

// checker judges one override.
type checker struct {
	source, target string
	findings       []error
}

func (c *checker) wrong(format string, args ...any) {
	c.findings = append(c.findings, &Finding{c.source, c.target, fmt.Sprintf(format, args...)})
}

// known tells whether the override names something there is, and names it once.
func (a *applier) known(o *Override, c *checker) bool {
	switch {
	case (o.Path == "") == (o.Row == ""):
		c.wrong("give either the path of one child, such as node/core/scheduler, or the row of many, such as reconciler")
	case a.taken[c.target] != nil:
		c.wrong("it is overridden twice, the first time by %s; put both together", a.taken[c.target].Source)
	case o.Path != "" && a.places[o.Path] == nil:
		c.wrong("%s", a.noChild(o.Path))
	case o.Row != "" && !slices.Contains(rowNames(), o.Row):
		c.wrong("the catalog has no such row%s", DidYouMean(o.Row, rowNames()))
	case o.On == nil && o.Restarts == nil && o.Windows == nil:
		c.wrong("it changes nothing; give on, restarts or windows")
	default:
		a.taken[c.target] = o
	}
	return len(c.findings) == 0
}

func (a *applier) noChild(path string) string {
	for at := path; strings.Contains(at, "/"); {
		at = at[:strings.LastIndexByte(at, '/')]
		if a.places[at+members] != nil {
			return "the members of a pool share one policy; write " + at + members
		}
	}
	return "there is no such child" + DidYouMean(path, a.paths)
}

func rowNames() (names []string) {
	for _, e := range Rows {
		names = append(names, e.Spec.Row)
	}
	return names
}

// policy reads all four cells; old has what they may keep.
func (c *checker) policy(on map[string]Cell, old [core.NumFaultKinds]core.Reaction) (out [core.NumFaultKinds]core.Reaction) {
	for k, name := range kindNames {
		cell, ok := on[name]
		if !ok {
			c.wrong("on.%s is open; fill all of %s, each with do: %s", name, allKinds, allReactions)
			continue
		}
		out[k] = c.reaction("on."+name, cell, old[k].Backoff)
	}
	for _, name := range slices.Sorted(maps.Keys(on)) {
		if !slices.Contains(kindNames[:], name) {
			c.wrong("on.%s is no kind of fault; they are %s%s", name, allKinds, DidYouMean(name, kindNames[:]))
		}
	}
	return out
}

func (c *checker) reaction(field string, cell Cell, old core.Backoff) (r core.Reaction) {
	i := slices.Index(reactions, cell.Do)
	switch {
	case cell.Do == "":
		c.wrong("%s.do is open; it is %s", field, allReactions)
		return r
	case i < 0:
		c.wrong("%s.do %q is not %s%s", field, cell.Do, allReactions, DidYouMean(cell.Do, reactions))
		return r
	}
	r.Do = core.ReactionKind(i + 1)
	if r.Do == core.DoRestart || r.Do == core.DoPark {
		r.Backoff = c.backoff(field+".backoff", cell, old)
	} else if cell.Backoff != nil {
		c.wrong("%s.backoff has no meaning with do: %s; leave it out", field, cell.Do)
	}
	return r
}

func (c *checker) backoff(field string, cell Cell, old core.Backoff) core.Backoff {
	switch {
	case cell.Backoff != nil:
		return c.curve(field, cell.Backoff)
	case old == (core.Backoff{}):
		c.wrong("%s is open and the catalog has none for it; give for example {initial: 1s, factor: 2, cap: 1m, jitter: 0.2, reset: 2m}", field)
	}
	return old
}

func (c *checker) curve(field string, w *Curve) core.Backoff {
	b := core.Backoff{
		Initial: c.duration(field+".initial", w.Initial, minDelay, maxDelay),
		Factor:  c.number(field+".factor", w.Factor, 1, maxFactor),
		Cap:     c.duration(field+".cap", w.Cap, minDelay, maxDelay),
		Jitter:  c.number(field+".jitter", w.Jitter, 0, 0.9),
		Reset:   c.duration(field+".reset", w.Reset, minWithin, maxDelay),
	}
	if b.Cap > 0 && b.Cap < b.Initial {
		c.wrong("%s.cap %s is less than initial %s", field, b.Cap, b.Initial)
	}
	return b
}

func (c *checker) duration(field string, t Text, low, high time.Duration) time.Duration {
	if t == "" {
		c.wrong("%s is open; it is a time from %s to %s", field, short(low), short(high))
		return 0
	}
	d, err := time.ParseDuration(string(t))
	if err != nil || d < low || d > high {
		c.wrong("%s %q is not a time from %s to %s, such as 500ms or 2m", field, t, short(low), short(high))
		return 0
	}
	return d
}

func (c *checker) number(field string, v *float64, low, high float64) float64 {
	switch {
	case v == nil:
		c.wrong("%s is open; it is a number from %g to %g", field, low, high)
		return 0
	case *v < low || *v > high:
		c.wrong("%s %g is not a number from %g to %g", field, *v, low, high)
	}
	return *v
}

// rootEscalates holds that the root's cells stay what they are: nobody is above it.
func (c *checker) rootEscalates(on map[string]Cell) bool {
	for _, cell := range on {
		if cell.Do != core.DoEscalate.String() {
			c.wrong("on: nobody is above the root, so a fault that reaches it ends the process; all its cells are escalate")
			return false
		}
	}
	return true
}

func (c *checker) restarts(r *Restarts, spec *core.ChildSpec) {
	switch {
	case r == nil:
		return
	case spec.Kind != core.Supervisor:
		c.wrong("restarts is the budget of a supervisor, and this is a worker; set it on the group above")
	case *r == (Restarts{}):
		c.wrong("restarts changes nothing; give burst or sustained: {max, within}")
	default:
		c.rate("restarts.burst", r.Burst, &spec.Group.Intensity)
		c.rate("restarts.sustained", r.Sustained, &spec.Group.Sustained)
		c.sustained(spec.Group.Intensity, spec.Group.Sustained)
	}
}

// sustained holds that each of two budgets limits something that the other does not.
func (c *checker) sustained(burst, long core.Intensity) {
	if len(c.findings) == 0 && !long.SlowerThan(burst) {
		c.wrong("restarts.sustained %s beside restarts.burst %s: it has to allow as many in a longer time, at a lower rate; give both", rateText(long), rateText(burst))
	}
}

func (c *checker) rate(field string, r *Rate, into *core.Intensity) {
	if r == nil {
		return
	}
	if r.Max < 1 || r.Max > core.MaxIntensity {
		c.wrong("%s.max %d is not a number from 1 to %d", field, r.Max, core.MaxIntensity)
	}
	*into = core.Intensity{Max: r.Max, Within: c.duration(field+".within", r.Within, minWithin, maxWithin)}
}

func (c *checker) windows(w *Windows, spec *core.ChildSpec) {
	if w == nil {
		return
	}
	if *w == (Windows{}) {
		c.wrong("windows changes nothing; give start, hang or stop")
	}
	c.window("windows.start", w.Start, &spec.StartTimeout)
	c.window("windows.hang", w.Hang, &spec.HangAfter)
	c.window("windows.stop", w.Stop, &spec.StopTimeout)
}

func (c *checker) window(field string, t Text, into *time.Duration) {
	if t != "" {
		*into = c.duration(field, t, minWindow, maxWindow)
	}
}

// windowsNest holds that no override lets a supervisor be given up while a child of it is
// still within its own window.
func (a *applier) windowsNest(root *supervision.Spec, sources string) {
	was := map[string]need{}
	needs(root, root.ID, func(path string) *core.ChildSpec { return &a.places[path].ChildSpec }, was)
	now := map[string]need{}
	needs(root, root.ID, func(path string) *core.ChildSpec { return a.wanted[path] }, now)
	for _, path := range a.paths {
		c := &checker{source: sources, target: path}
		c.outlives("start", was[path].start, now[path].start)
		c.outlives("stop", was[path].stop, now[path].stop)
		a.findings = append(a.findings, c.findings...)
	}
}

// windowSources names the overrides that set windows: together they may ask for too much.
func windowSources(overrides []Override) string {
	var sources []string
	for _, o := range overrides {
		if o.Windows != nil && o.Source != "" {
			sources = append(sources, o.Source)
		}
	}
	return strings.Join(sources, ", ")
}

// room is how long the children of a supervisor may take altogether, and what it has.
type room struct{ needs, has time.Duration }

// need is the room to start and to stop.
type need struct{ start, stop room }

// needs notes what each supervisor needs, and returns what this subtree does.
func needs(s *supervision.Spec, path string, spec func(path string) *core.ChildSpec, into map[string]need) (start, stop time.Duration) {
	own := spec(path)
	if own.Kind == core.Worker {
		return own.StartTimeout, own.StopTimeout
	}
	for i := range s.Children {
		childStart, childStop := needs(&s.Children[i], path+"/"+s.Children[i].ID, spec, into)
		start, stop = start+childStart, stop+childStop
	}
	if s.Template != nil {
		stop += spec(path + members).StopTimeout
	}
	into[path] = need{room{start, own.StartTimeout}, room{stop, own.StopTimeout}}
	return start, stop
}

func (c *checker) outlives(what string, was, now room) {
	if now != was && now.has < now.needs {
		c.wrong("its children may take %s to %s, one after the other, and windows.%s gives it %s; shorten theirs or lengthen its own", short(now.needs), what, what, short(now.has))
	}
}

// short writes a duration without the zeros at its end.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
