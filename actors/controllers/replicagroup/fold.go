package replicagroup

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/nodeactor/nodeactor/actors/strategy"
)

// fold takes the spec into what is stored, once for each generation that can be accepted. One that cannot leaves what was accepted in force.
func (p *pass) fold(g *Group) error {
	d, begun := g.durable()
	if begun && d.Generation >= g.Generation {
		return nil
	}
	version, err := p.acceptable(g)
	if err != nil {
		return err
	}
	if p.unaccepted != nil {
		return nil
	}
	folded, err := foldInto(d, begun, g, version, p.Now())
	if err != nil {
		p.unaccepted = refuse(reasonInvalidSpec, "%v", err)
		return nil
	}
	if err := p.keepTemplate(p.ctx, g, version); err != nil {
		return err
	}
	return p.store(g, folded.Durable, auditsOf(folded))
}

func foldInto(d strategy.Durable, begun bool, g *Group, version string, now strategy.Time) (strategy.Folded, error) {
	if begun {
		return strategy.Fold(d, g.declared(version), now)
	}
	first, err := strategy.Begin(string(g.UID), g.declared(version))
	return strategy.Folded{Durable: first}, err
}

func auditsOf(f strategy.Folded) []strategy.Audit {
	if audit, ok := f.Audit.Get(); ok {
		return []strategy.Audit{audit}
	}
	return nil
}

// acceptable gives the version of the spec's template, or sets unaccepted to what is wrong with the spec.
func (p *pass) acceptable(g *Group) (version string, err error) {
	if err := checkTemplate(g.Spec.PodTemplate); err != nil {
		p.unaccepted = refuse(reasonInvalidTemplate, "%v", err)
		return "", nil
	}
	sizes := []string{g.Spec.Size}
	if g.Spec.HydrationBurst != nil {
		sizes = append(sizes, g.Spec.HydrationBurst.Size)
	}
	for _, name := range sizes {
		_, ok, err := p.world.Size(name)
		if err != nil {
			return "", err
		}
		if !ok {
			p.unaccepted = unknownSize(name)
			return "", nil
		}
	}
	return versionOf(g.Spec.PodTemplate)
}

func unknownSize(name string) *refusal {
	return refuse(reasonUnknownSize, "there is no SizeClass %q; make it, or choose one of 'kubectl get sizeclasses'", name)
}

// keepTemplate stores a version of the template, so that replicas of it can be made when the spec has another one.
func (p *pass) keepTemplate(ctx context.Context, g *Group, version string) error {
	name := revisionName(g.Name, version)
	if r, ok := p.world.Revision(g.Namespace, name); ok && metav1.IsControlledBy(r, g) {
		return nil
	}
	err := p.world.CreateRevision(ctx, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: g.Namespace, Name: name, Labels: map[string]string{GroupLabel: g.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(g, Kind.GroupVersionKind())},
		},
		Data: runtime.RawExtension{Raw: g.Spec.PodTemplate}, Revision: g.Generation,
	})
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot keep the template of replica group %s: a ControllerRevision %s of somebody else is there still: %w", p.key, name, err)
	}
	return err
}

func revisionName(group, version string) string { return group + "-" + version }

// template gives a version of the group's template: as it was kept, or from the spec while that has it.
func (p *pass) template(g *Group, version string) (*corev1.PodTemplateSpec, error) {
	if r, ok := p.world.Revision(g.Namespace, revisionName(g.Name, version)); ok && metav1.IsControlledBy(r, g) {
		return parseTemplate(r.Data.Raw)
	}
	if current, err := versionOf(g.Spec.PodTemplate); err == nil && current == version {
		return parseTemplate(g.Spec.PodTemplate)
	}
	return nil, refuse(reasonTemplateLost, "the ControllerRevision %s is gone, which has the template of replicas that serve; change the template so that new ones take over", revisionName(g.Name, version))
}

// tidy deletes versions of the template that nothing refers to any more.
func (p *pass) tidy(g *Group, d strategy.Durable, pods []*corev1.Pod) error {
	revisions, err := p.world.Revisions(p.ctx, g.UID)
	if err != nil {
		return err
	}
	used := map[string]bool{d.Config.Shape.Template: true}
	if r, ok := d.InFlight(); ok {
		used[r.Target.Shape.Template] = true
	}
	if version, err := versionOf(g.Spec.PodTemplate); err == nil {
		used[version] = true
	}
	for _, pod := range pods {
		used[pod.Labels[TemplateLabel]] = true
	}
	for _, r := range revisions {
		if r.DeletionTimestamp == nil && !used[r.Name[len(r.Name)-min(versionLength, len(r.Name)):]] {
			if err := p.world.DeleteRevision(p.ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}
