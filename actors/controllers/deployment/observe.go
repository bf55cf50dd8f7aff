package deployment

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/deployment/util"

	"github.com/nodeactor/nodeactor/actors/cache"
)

// observe collects a Deployment's sets, adopting what matches and belongs to nobody and releasing what no longer matches.
func (r *reconciler) observe(ctx context.Context, d *appsv1.Deployment) (observed, error) {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return observed{}, err
	}
	candidates := append(cache.Owned[*appsv1.ReplicaSet](r.cache, d.UID), cache.Loose[*appsv1.ReplicaSet](r.cache, d.Namespace, selector)...)
	control := controller.RealRSControl{KubeClient: r.client, Recorder: r.events}
	refs := controller.NewReplicaSetControllerRefManager(control, d, selector, kind.GroupVersionKind(), r.mayAdopt(d))
	sets, err := refs.ClaimReplicaSets(ctx, candidates)
	if err != nil {
		return observed{}, err
	}
	o := observed{deployment: d, sets: sets, now: r.clock.Now()}
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		o.oldPods = r.oldPods(d, sets)
	}
	return o, nil
}

// mayAdopt asks the API before the first adoption whether the Deployment is still the one that was read and not going away.
func (r *reconciler) mayAdopt(d *appsv1.Deployment) func(context.Context) error {
	return controller.RecheckDeletionTimestamp(func(ctx context.Context) (metav1.Object, error) {
		fresh, err := r.client.AppsV1().Deployments(d.Namespace).Get(ctx, d.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if fresh.UID != d.UID {
			return nil, fmt.Errorf("cannot adopt for deployment %s/%s: it was replaced, uid %s is now %s", d.Namespace, d.Name, d.UID, fresh.UID)
		}
		return fresh, nil
	})
}

// oldPods tells whether a pod of another set than the current one has not ended yet.
func (r *reconciler) oldPods(d *appsv1.Deployment, sets []*appsv1.ReplicaSet) bool {
	current := util.FindNewReplicaSet(d, append([]*appsv1.ReplicaSet(nil), sets...))
	for _, set := range sets {
		if current != nil && set.UID == current.UID {
			continue
		}
		for _, pod := range cache.Owned[*corev1.Pod](r.cache, set.UID) {
			if pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded {
				return true
			}
		}
	}
	return false
}

func selectsAll(d *appsv1.Deployment) bool {
	return apiequality.Semantic.DeepEqual(d.Spec.Selector, &metav1.LabelSelector{})
}

func sameStatus(a, b *appsv1.Deployment) bool {
	return apiequality.Semantic.DeepEqual(a.Status, b.Status)
}
