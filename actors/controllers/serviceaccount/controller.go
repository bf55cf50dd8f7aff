// Package serviceaccount gives every namespace its default ServiceAccount.
package serviceaccount

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
)

// defaultName is the account pods get that ask for none.
const defaultName = "default"

var (
	kind        = cache.KindOf[*corev1.Namespace]()
	accountKind = cache.KindOf[*corev1.ServiceAccount]()
)

// New makes the controller.
func New(client kubernetes.Interface) kube.Controller {
	return kube.Controller{
		Name: "serviceaccount", Manifests: kind,
		Reads: []kube.Read{kube.Self(kind), {Kind: accountKind, Keys: lost}},
		New: func(c *cache.Cache) kube.Reconciler {
			return &reconciler{cache: c, client: client}
		},
	}
}

// lost names the namespace whose default account has gone.
func lost(_ *cache.Cache, change cache.Change) []kube.Key {
	if !change.Deleted() || change.Meta().Name != defaultName {
		return nil
	}
	return []kube.Key{{Name: change.Meta().Namespace}}
}

// reconciler runs passes over namespaces.
type reconciler struct {
	cache  *cache.Cache
	client kubernetes.Interface
}

// Reconcile implements kube.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, key kube.Key) (kube.Action, error) {
	namespace, ok := cache.Get[*corev1.Namespace](r.cache, "", key.Name)
	if !ok || namespace.DeletionTimestamp != nil || r.cache.Has(accountKind, key.Name, defaultName) {
		return kube.None(), nil
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: key.Name, Name: defaultName}}
	_, err := r.client.CoreV1().ServiceAccounts(key.Name).Create(ctx, account, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return kube.None(), nil
	}
	return kube.None(), fmt.Errorf("cannot create service account %s/%s: %w", key.Name, defaultName, err)
}
