package supervisionrest

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/nodeactor/nodeactor/actors/apiserver/supervisionapi"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// eachPolicy calls f for what was declared about each place of the tree, parents first, until it returns false.
func eachPolicy(s *supervision.Spec, path string, f func(path string, s *supervision.Spec) bool) bool {
	if !f(path, s) {
		return false
	}
	for i := range s.Children {
		if !eachPolicy(&s.Children[i], path+"/"+s.Children[i].ID, f) {
			return false
		}
	}
	return !isPool(s) || s.Template == nil || f(path+"/"+members, s.Template)
}

// policyName is the name of the policy that the actor at path follows.
func policyName(root *supervision.Spec, path string) string {
	s, policy := place(root, path)
	if s == nil {
		return ""
	}
	return Name(policy)
}

// policyOf makes the object of what was declared about a place.
func policyOf(path string, s *supervision.Spec, revision string) *api.FaultPolicy {
	p := &api.FaultPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.GroupVersion.String(), Kind: "FaultPolicy"},
		ObjectMeta: meta(api.FaultPolicies, path, s.Row, revision),
		Spec: api.FaultPolicySpec{
			Path: path, Row: s.Row, Kind: api.Worker, Restart: s.Restart.String(), Significant: s.Significant,
			StartTimeout: period(s.StartTimeout), HangAfter: period(s.HangAfter), StopTimeout: period(s.StopTimeout),
			Mailbox: api.MailboxPolicy{Limit: int32(s.Mailbox.Limit), Overflow: s.Mailbox.Overflow.String()},
			Reactions: api.Reactions{
				Panic: reactionOf(s.Policy[core.Panic]), Hang: reactionOf(s.Policy[core.Hang]),
				ErrorReturn: reactionOf(s.Policy[core.ErrorReturn]), BindFailure: reactionOf(s.Policy[core.BindFailure]),
			},
		},
	}
	if s.Kind == core.Supervisor {
		p.Spec.Kind, p.Spec.Group = api.Supervisor, groupOf(s.Group)
	}
	p.Status.Overrides = overrides(&s.ChildSpec)
	p.Status.Overridden = len(p.Status.Overrides) > 0
	return p
}

func reactionOf(r core.Reaction) api.Reaction {
	out := api.Reaction{Do: r.Do.String()}
	if r.Backoff != (core.Backoff{}) {
		b := r.Backoff
		out.Backoff = &api.Backoff{Initial: period(b.Initial), Factor: decimal(b.Factor), Cap: period(b.Cap), Jitter: decimal(b.Jitter), Reset: period(b.Reset)}
	}
	return out
}

func groupOf(g core.GroupSpec) *api.GroupPolicy {
	return &api.GroupPolicy{
		Strategy: g.Strategy.String(), Burst: intensityOf(g.Intensity), Sustained: intensityOf(g.Sustained), MaxAbandoned: int32(g.MaxAbandoned),
	}
}

func intensityOf(i core.Intensity) api.Intensity {
	return api.Intensity{Max: int32(i.Max), Within: period(i.Within)}
}

func period(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }

func decimal(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// overrides names the fields in which a spec differs from its row of the catalog, as they are named in the API.
func overrides(s *core.ChildSpec) (fields []string) {
	row, known := catalogRow(s.Row)
	if !known {
		return nil
	}
	differs := func(field string, is bool) {
		if is {
			fields = append(fields, field)
		}
	}
	differs("restart", s.Restart != row.Restart)
	differs("significant", s.Significant != row.Significant)
	differs("startTimeout", s.StartTimeout != row.StartTimeout)
	differs("hangAfter", s.HangAfter != row.HangAfter)
	differs("stopTimeout", s.StopTimeout != row.StopTimeout)
	differs("mailbox", s.Mailbox != row.Mailbox)
	for kind, field := range []string{"reactions.panic", "reactions.hang", "reactions.errorReturn", "reactions.bindFailure"} {
		differs(field, s.Policy[kind] != row.Policy[kind])
	}
	differs("group.strategy", s.Group.Strategy != row.Group.Strategy)
	differs("group.burst", s.Group.Intensity != row.Group.Intensity)
	differs("group.sustained", s.Group.Sustained != row.Group.Sustained)
	differs("group.maxAbandoned", s.Group.MaxAbandoned != row.Group.MaxAbandoned)
	return fields
}

func catalogRow(name string) (core.ChildSpec, bool) {
	for i := range catalog.Rows {
		if catalog.Rows[i].Spec.Row == name {
			return catalog.Rows[i].Spec, true
		}
	}
	return core.ChildSpec{}, false
}
