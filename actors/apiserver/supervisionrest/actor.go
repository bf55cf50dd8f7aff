package supervisionrest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/nodeactor/nodeactor/actors/apiserver/supervisionapi"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// maxMessage bounds the text of a fault in an object; the log has all of it.
const maxMessage = 1024

// states are the names of the states in the API.
var states = map[core.State]api.ActorState{
	core.Idle: api.Idle, core.Starting: api.Starting, core.Running: api.Running, core.Stopping: api.Stopping,
	core.BackingOff: api.BackingOff, core.Parked: api.Parked, core.Dead: api.Dead, core.Done: api.Done,
}

// meta is the metadata of an object. An object of a path is the same object over all its lives, so its UID comes from its name.
func meta(resource, path, row, revision string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: Name(path), ResourceVersion: revision}
	m.UID = uidOf(resource + "/" + path)
	if row != "" {
		m.Labels = map[string]string{api.LabelRow: row}
	}
	return m
}

// uidOf is a UUID of version 8, whose bits are the maker's own.
func uidOf(name string) types.UID {
	sum := sha256.Sum256([]byte(name))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	h := hex.EncodeToString(sum[:16])
	return types.UID(h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:])
}

// actorOf makes the object of a node of the tree.
func actorOf(n *supervision.Node, root *supervision.Spec, cpu *supervision.CPUShares, revision string) *api.Actor {
	a := &api.Actor{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.GroupVersion.String(), Kind: "Actor"},
		ObjectMeta: meta(api.Actors, n.Path, n.Row, revision),
		Spec:       api.ActorSpec{Path: n.Path, Row: n.Row, Kind: api.Worker, FaultPolicy: policyName(root, n.Path)},
		Status:     statusOf(n),
	}
	if n.Supervisor {
		a.Spec.Kind = api.Supervisor
	}
	if i := strings.LastIndexByte(n.Path, '/'); i >= 0 {
		a.Spec.Supervisor = Name(n.Path[:i])
	}
	if cpu != nil {
		a.Status.CPU = resource.NewMilliQuantity(int64(cpu.ByPath[n.Path]*1000), resource.DecimalSI).String()
		a.Status.CPUMeasured = timeOf(cpu.At)
	}
	return a
}

func statusOf(n *supervision.Node) api.ActorStatus {
	s := api.ActorStatus{
		State: states[n.State], Since: timeOf(n.Since), NextTry: timeOf(n.NextTry), Generation: int64(n.Generation), Restarts: int32(n.Restarts),
		Hung: n.Hung, Zombies: int32(n.Abandoned), Mailbox: api.MailboxStatus{Depth: int32(n.Mailbox), Handled: int64(n.Handled)},
		Jobs: n.JobNames, LastBeat: timeOf(n.LastBeat), LastFault: faultOf(n.LastFault), Conditions: conditionsOf(n),
	}
	if n.OldestFor > 0 {
		oldest := durationOf(n.OldestFor)
		s.Mailbox.Oldest = &oldest
	}
	if n.BusyWith != "" {
		s.Busy = &api.BusyStatus{With: n.BusyWith, For: durationOf(n.BusyFor)}
	}
	return s
}

func faultOf(f *supervision.Fault) *api.FaultStatus {
	if f == nil {
		return nil
	}
	out := &api.FaultStatus{Kind: f.Kind.String(), At: metav1.NewTime(f.At), Generation: int64(f.Generation), In: f.Message, StackHash: f.StackHash()}
	if f.Err != nil {
		out.Message = cut(f.Err.Error())
	}
	return out
}

// cut bounds a text and leaves it readable.
func cut(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage], "") + "…"
}

func conditionsOf(n *supervision.Node) []metav1.Condition {
	return []metav1.Condition{ready(n), parked(n), abandoned(n)}
}

// ready is true while the actor does its work.
func ready(n *supervision.Node) metav1.Condition {
	c := condition(n, api.ConditionReady, n.State == core.Running && !n.Hung)
	c.Reason = string(states[n.State])
	switch {
	case n.Hung:
		c.Reason, c.Message = "Hung", fmt.Sprintf("silent in %s for %s", n.BusyWith, n.BusyFor.Round(time.Second))
	case n.State == core.Running:
	case n.LastFault != nil:
		c.Message = cut(n.LastFault.Error())
	}
	return c
}

// parked is true while the actor waits because its budget is spent.
func parked(n *supervision.Node) metav1.Condition {
	c := condition(n, api.ConditionParked, n.State == core.Parked)
	c.Reason = "WithinBudget"
	if n.State == core.Parked {
		c.Reason = api.ReasonCrashLoop
		c.Message = fmt.Sprintf("its restarts are spent; it is tried again at %s, or by nodeactor restart %s", n.NextTry.UTC().Format(time.RFC3339), n.Path)
	}
	return c
}

// abandoned is true while something runs that was left behind.
func abandoned(n *supervision.Node) metav1.Condition {
	c := condition(n, api.ConditionAbandoned, n.Abandoned > 0)
	c.Reason = "NothingLeftBehind"
	if n.Abandoned > 0 {
		z := n.Zombies[len(n.Zombies)-1]
		c.Reason, c.LastTransitionTime = "WouldNotStop", metav1.NewTime(z.Since)
		c.Message = fmt.Sprintf("%d generations still run, the last is %d, fenced; it was in %s", n.Abandoned, z.Generation, z.StackHash)
	}
	return c
}

func condition(n *supervision.Node, kind string, is bool) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, ObservedGeneration: int64(n.Generation), LastTransitionTime: metav1.NewTime(n.Since)}
	if is {
		c.Status = metav1.ConditionTrue
	}
	return c
}

func timeOf(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}

// durationOf leaves out digits that nobody reads.
func durationOf(d time.Duration) metav1.Duration {
	return metav1.Duration{Duration: d.Round(time.Millisecond)}
}
