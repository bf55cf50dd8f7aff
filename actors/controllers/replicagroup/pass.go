package replicagroup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodeactor/nodeactor/actors/operator/kube"
	"github.com/nodeactor/nodeactor/actors/strategy"
)

// Limits of a pass.
const (
	// parallel is how many pods of one group are made or deleted at a time.
	parallel = 16
	// unplacedGrace is how long a pod may find no node before that is taken for a lack of room: nodes and pods that end need a moment.
	unplacedGrace = 15 * time.Second
)

// pass is one pass over one group. It is the kernel's Context: a world with one set in it.
type pass struct {
	*reconciler
	ctx context.Context
	key kube.Key
	// uid and generation are those of the group that the pass began with; nothing is done about another one.
	uid        types.UID
	generation int64
	// unaccepted is what is wrong with the spec, refused what could not be done, noRoom why there is no room.
	unaccepted, refused *refusal
	noRoom              string
}

var _ strategy.Context = (*pass)(nil)

// id is the only set's.
func (p *pass) id() strategy.SetID { return strategy.SetID(p.key.String()) }

// Now implements strategy.Context by the wall clock, since what is stored outlives the process.
func (p *pass) Now() strategy.Time { return strategy.TimeOf(p.clock.Now()) }

// ManagedSets implements strategy.Context.
func (p *pass) ManagedSets() ([]strategy.SetID, error) { return []strategy.SetID{p.id()}, nil }

// group reads the group; false when it is gone, or about to go, or another one.
func (p *pass) group() (*Group, bool, error) {
	g, ok, err := p.world.Group(p.key)
	return g, ok && err == nil && g.UID == p.uid && g.DeletionTimestamp == nil, err
}

// States implements strategy.Context.
func (p *pass) States([]strategy.SetID) ([]strategy.State, error) {
	g, ok, err := p.group()
	if err != nil || !ok {
		return nil, err
	}
	d, begun := g.durable()
	if !begun {
		return nil, nil
	}
	pods, err := p.world.Pods(p.ctx, g.UID)
	if err != nil {
		return nil, err
	}
	return []strategy.State{p.stateOf(g, d, pods)}, nil
}

func (p *pass) stateOf(g *Group, d strategy.Durable, pods []*corev1.Pod) strategy.State {
	s := strategy.State{ID: p.id(), Durable: d}
	for _, pod := range pods {
		if going(pod) || dead(pod) {
			s.Taken = append(s.Taken, replicaName(g.Name, pod))
			continue
		}
		s.Replicas = append(s.Replicas, replicaOf(g.Name, pod))
	}
	s.NoRoom = p.crowded(d, pods)
	return s
}

// crowded tells whether the group lacks room: a pod has found no node for a while, and neither the end of other pods of the group may
// change that nor was it so before the change in progress began, which then is not to blame.
func (p *pass) crowded(d strategy.Durable, pods []*corev1.Pod) bool {
	if slices.ContainsFunc(pods, going) {
		return false
	}
	r, busy := d.InFlight()
	for _, pod := range pods {
		since, why, yes := unplaced(pod)
		if !yes || p.clock.Now().Sub(since) < unplacedGrace {
			continue
		}
		if !busy || shapeOf(pod) == r.Target.Shape || !since.Before(r.Started.UTC().Truncate(time.Second)) {
			p.noRoom = fmt.Sprintf("pod %s finds no node: %s", pod.Name, why)
			return true
		}
	}
	return false
}

// HydratedReplicas implements strategy.Context: those whose pod is Ready.
func (p *pass) HydratedReplicas(_ strategy.SetID, ids []strategy.ReplicaID) ([]strategy.ReplicaID, error) {
	pods, err := p.world.Pods(p.ctx, p.uid)
	if err != nil {
		return nil, err
	}
	var hydrated []strategy.ReplicaID
	for _, pod := range pods {
		if id := strategy.ReplicaID(pod.UID); ready(pod) && slices.Contains(ids, id) {
			hydrated = append(hydrated, id)
		}
	}
	return hydrated, nil
}

// HasHydratableObjects implements strategy.Context: replicas have something to catch up on when their template says how to see it.
func (p *pass) HasHydratableObjects(strategy.SetID) (bool, error) {
	g, ok, err := p.group()
	if err != nil || !ok {
		return false, err
	}
	d, _ := g.durable()
	template, err := p.template(g, d.Config.Shape.Template)
	return err == nil && hydrates(template), err
}

// RefreshInputs implements strategy.Context.
func (p *pass) RefreshInputs(strategy.SetID) (*strategy.RefreshInputs, error) {
	g, ok, err := p.group()
	if err != nil || !ok || g.Spec.Schedule == nil {
		return nil, err
	}
	return refreshInputs(g, p.Now()), nil
}

// Apply implements strategy.Context: what is stored comes first, by compare-and-append, then replicas.
func (p *pass) Apply(b strategy.Batch) (strategy.Outcome, error) {
	g, holds, err := p.expected(b)
	if err != nil || !holds {
		return strategy.Rejected, err
	}
	if !b.Update.Empty() {
		d, _ := g.durable()
		err := p.store(g, d.With(b.Update), b.Update.Audits())
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return strategy.Rejected, nil
		}
		if err != nil {
			return 0, err
		}
	}
	return p.replicas(g, b)
}

// expected reads the group and tells whether it is what the batch was decided from. Of replicas the API itself is asked, since they are
// written without a precondition.
func (p *pass) expected(b strategy.Batch) (*Group, bool, error) {
	g, ok, err := p.group()
	if err == nil && ok && len(b.Creates)+len(b.Drops) > 0 {
		g, err = p.world.Fresh(p.ctx, p.key)
		if apierrors.IsNotFound(err) {
			return nil, false, nil
		}
	}
	if err != nil || !ok || g.UID != p.uid || g.DeletionTimestamp != nil || g.Generation != p.generation {
		return nil, false, err
	}
	d, begun := g.durable()
	return g, begun && b.Expected.Holds(d), nil
}

// replicas makes those that are missing, and lets go of others when all were made.
func (p *pass) replicas(g *Group, b strategy.Batch) (strategy.Outcome, error) {
	refusals := make([]*refusal, len(b.Creates))
	err := kube.Parallel(p.ctx, parallel, len(b.Creates), func(ctx context.Context, i int) error {
		err := p.create(ctx, g, b.Creates[i])
		if errors.As(err, &refusals[i]) {
			return nil // The others are made nevertheless.
		}
		return err
	})
	refused := slices.IndexFunc(refusals, func(r *refusal) bool { return r != nil })
	switch {
	case quotaRefused(err):
		p.noRoom = err.Error()
		return strategy.Exhausted, nil
	case namespaceEnds(err):
		return strategy.Rejected, nil
	case err != nil:
		return 0, err
	case refused >= 0:
		return 0, refusals[refused]
	}
	err = kube.Parallel(p.ctx, parallel, len(b.Drops), func(ctx context.Context, i int) error { return p.drop(ctx, g, b.Drops[i]) })
	return strategy.Applied, err
}

func (p *pass) create(ctx context.Context, g *Group, c strategy.Create) error {
	size, ok, err := p.world.Size(c.Shape.Size)
	if err != nil {
		return err
	}
	if !ok {
		return unknownSize(c.Shape.Size)
	}
	template, err := p.template(g, c.Shape.Template)
	if err != nil {
		return err
	}
	pod := podOf(g, template, size, c)
	err = p.world.CreatePod(ctx, pod)
	switch {
	case apierrors.IsAlreadyExists(err):
		return p.ours(pod)
	case err != nil && verdict(err) && !quotaRefused(err) && !namespaceEnds(err):
		return refuse(reasonPodRefused, "cannot make pod %s: %v", pod.Name, err)
	case err != nil:
		return err
	}
	p.event(corev1.EventTypeNormal, strategy.ReplicaCreated.String(), "made replica %s of %s: %s", c.Name, c.Shape, reasonOf(c))
	return nil
}

// ours tells whether the pod that has the name of a replica is that replica.
func (p *pass) ours(pod *corev1.Pod) error {
	there, ok := p.world.Pod(pod.Namespace, pod.Name)
	if !ok || controls(p.uid, there) {
		return nil
	}
	return refuse(reasonNameTaken, "cannot make pod %s: another pod has that name; delete it, or it goes by itself when its owner is gone", pod.Name)
}

func (p *pass) drop(ctx context.Context, g *Group, d strategy.Drop) error {
	name := podName(g.Name, d.Name)
	if err := p.world.DeletePod(ctx, g.Namespace, name, types.UID(d.ID)); err != nil {
		return err
	}
	p.event(corev1.EventTypeNormal, strategy.ReplicaDropped.String(), "removed replica %s of %s: %s", d.Name, d.Shape, strategy.Retired)
	return nil
}

// bury deletes pods that have ended, whose replicas the kernel replaces.
func (p *pass) bury(g *Group, pods []*corev1.Pod) error {
	for _, pod := range pods {
		if !dead(pod) {
			continue
		}
		if err := p.world.DeletePod(p.ctx, g.Namespace, pod.Name, pod.UID); err != nil {
			return fmt.Errorf("cannot delete pod %s, which has ended: %w", pod.Name, err)
		}
		why := cmp.Or(pod.Status.Reason, string(pod.Status.Phase))
		p.event(corev1.EventTypeWarning, "ReplicaEnded", "replica %s has ended (%s %s); another takes its place", replicaName(g.Name, pod), why, pod.Status.Message)
	}
	return nil
}
