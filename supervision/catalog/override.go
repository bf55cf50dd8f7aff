package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// ErrOverride is returned when an override cannot be honoured; each finding names where it
// was written, the child, and what is allowed.
var ErrOverride = errors.New("invalid fault policy")

// Override changes what the catalog says of one child, or of every child of one row. What it
// leaves out stays as the catalog has it, but the policy is given whole: all four cells.
type Override struct {
	// Path names a child, such as node/core/scheduler; the members of a pool are POOL/*. Row names
	// a row instead. A path beats a row.
	Path string `json:"path,omitempty"`
	Row  string `json:"row,omitempty"`
	// On has a cell for panic, hang, errorReturn and bindFailure.
	On map[string]Cell `json:"on,omitempty"`
	// Restarts is what a supervisor bears; Windows are the times a child is given.
	Restarts *Restarts `json:"restarts,omitempty"`
	Windows  *Windows  `json:"windows,omitempty"`
	// Source says where the override was written.
	Source string `json:"-"`
}

// UnmarshalJSON refuses unknown fields. To YAML, a bare on is the truth value, so that the key
// arrives as "true".
func (o *Override) UnmarshalJSON(b []byte) error {
	type plain Override
	var read struct {
		plain
		True map[string]Cell `json:"true"`
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&read); err != nil {
		return err
	}
	*o = Override(read.plain)
	if o.On == nil {
		o.On = read.True
	}
	return nil
}

// Cell is the reaction to one kind of fault: restart, stop, escalate or park. Without a
// back-off, restart and park keep that of the catalog.
type Cell struct {
	Do      string `json:"do,omitempty"`
	Backoff *Curve `json:"backoff,omitempty"`
}

// Curve is a whole back-off: nothing of it may be left out.
type Curve struct {
	Initial Text     `json:"initial,omitempty"`
	Factor  *float64 `json:"factor,omitempty"`
	Cap     Text     `json:"cap,omitempty"`
	Jitter  *float64 `json:"jitter,omitempty"`
	Reset   Text     `json:"reset,omitempty"`
}

// Restarts overrides the budgets of a supervisor, those of a pool are each member's: a burst
// of restarts, and what may go on for longer at a lower rate.
type Restarts struct {
	Burst     *Rate `json:"burst,omitempty"`
	Sustained *Rate `json:"sustained,omitempty"`
}

// Rate is at most Max restarts Within a time.
type Rate struct {
	Max    int  `json:"max,omitempty"`
	Within Text `json:"within,omitempty"`
}

// Windows overrides the times a child is given: until its start is acknowledged, for one
// message, and to stop.
type Windows struct {
	Start Text `json:"start,omitempty"`
	Hang  Text `json:"hang,omitempty"`
	Stop  Text `json:"stop,omitempty"`
}

// Text is a value as it was written, so that a finding can quote it.
type Text string

// UnmarshalJSON takes a string, or anything else literally: it is judged with its place known.
func (t *Text) UnmarshalJSON(b []byte) error {
	*t = Text(strings.Trim(string(b), `"`))
	return nil
}

// Apply changes the tree below root as the overrides say. Every finding is reported, and
// with any of them nothing is changed.
func Apply(root *supervision.Spec, overrides []Override) error {
	a := newApplier(root)
	for _, byRow := range []bool{true, false} {
		for i := range overrides {
			if o := &overrides[i]; (o.Row != "") == byRow {
				a.apply(o)
			}
		}
	}
	a.windowsNest(root, windowSources(overrides))
	if len(a.findings) > 0 {
		return errors.Join(a.findings...)
	}
	for path, spec := range a.wanted {
		a.places[path].ChildSpec = *spec
	}
	return nil
}

// applier collects what the tree shall become, and everything that speaks against it.
type applier struct {
	root     string
	paths    []string
	places   map[string]*supervision.Spec
	wanted   map[string]*core.ChildSpec
	taken    map[string]*Override
	findings []error
}

func newApplier(root *supervision.Spec) *applier {
	a := &applier{
		root: root.ID, places: map[string]*supervision.Spec{}, wanted: map[string]*core.ChildSpec{}, taken: map[string]*Override{},
	}
	each(root, root.ID, func(path string, s *supervision.Spec) {
		spec := s.ChildSpec
		a.paths = append(a.paths, path)
		a.places[path], a.wanted[path] = s, &spec
	})
	return a
}

// each calls f for every child of the tree, parents first; the members of a pool are POOL/*.
func each(s *supervision.Spec, path string, f func(path string, s *supervision.Spec)) {
	f(path, s)
	for i := range s.Children {
		each(&s.Children[i], path+"/"+s.Children[i].ID, f)
	}
	if s.Template != nil {
		each(s.Template, path+members, f)
	}
}

// members stands for the members of a pool.
const members = "/*"

func (a *applier) apply(o *Override) {
	c := &checker{source: o.Source, target: cmp.Or(o.Path, o.Row)}
	if a.known(o, c) {
		for _, path := range a.targets(o) {
			a.change(o, path, c)
		}
	}
	a.findings = append(a.findings, c.findings...)
}

// targets are the paths an override is for; a row that this tree does not use has none.
func (a *applier) targets(o *Override) (paths []string) {
	for _, path := range a.paths {
		if path == o.Path || o.Row != "" && a.wanted[path].Row == o.Row {
			paths = append(paths, path)
		}
	}
	return paths
}

// change judges an override against one child. What is wrong in itself would be found anew
// at each child of a row; it is told once.
func (a *applier) change(o *Override, path string, c *checker) {
	if len(c.findings) > 0 {
		return
	}
	spec := a.wanted[path]
	if o.On != nil && (path != a.root || c.rootEscalates(o.On)) {
		spec.Policy = c.policy(o.On, spec.Policy)
	}
	c.restarts(o.Restarts, spec)
	c.windows(o.Windows, spec)
}
