// Package rootca keeps the cluster's certificate authority in a ConfigMap of every namespace, where pods find it.
package rootca

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
)

// Names that pods and upstream's tools know.
const (
	mapName        = "kube-root-ca.crt"
	dataKey        = "ca.crt"
	descriptionKey = "kubernetes.io/description"
	description    = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal " +
		"service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."
)

var (
	kind    = cache.KindOf[*corev1.Namespace]()
	mapKind = cache.KindOf[*corev1.ConfigMap]()
)

// New makes the controller. bundle gives the PEM of the authority as it is now.
func New(client kubernetes.Interface, bundle func() []byte) kube.Controller {
	return kube.Controller{
		Name: "root-ca", Manifests: kind,
		Reads: []kube.Read{kube.Self(kind), {Kind: mapKind, Keys: touched}},
		New: func(c *cache.Cache) kube.Reconciler {
			return &reconciler{cache: c, client: client, bundle: bundle}
		},
	}
}

// touched names the namespace whose map somebody changed.
func touched(_ *cache.Cache, change cache.Change) []kube.Key {
	if change.Meta().Name != mapName {
		return nil
	}
	return []kube.Key{{Name: change.Meta().Namespace}}
}

// reconciler runs passes over namespaces.
type reconciler struct {
	cache  *cache.Cache
	client kubernetes.Interface
	bundle func() []byte
}

// Reconcile implements kube.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, key kube.Key) (kube.Action, error) {
	namespace, ok := cache.Get[*corev1.Namespace](r.cache, "", key.Name)
	if !ok || namespace.DeletionTimestamp != nil {
		return kube.None(), nil
	}
	present, ok := cache.Get[*corev1.ConfigMap](r.cache, key.Name, mapName)
	if !ok {
		return kube.None(), r.create(ctx, key.Name)
	}
	wanted := r.wanted(present)
	if maps.Equal(present.Data, wanted.Data) && maps.Equal(present.Annotations, wanted.Annotations) {
		return kube.None(), nil
	}
	_, err := r.client.CoreV1().ConfigMaps(key.Name).Update(ctx, wanted, metav1.UpdateOptions{})
	return kube.None(), err
}

// wanted is a map brought up to date; only its own key and annotation are touched.
func (r *reconciler) wanted(present *corev1.ConfigMap) *corev1.ConfigMap {
	wanted := present.DeepCopy()
	wanted.Data = map[string]string{dataKey: string(r.bundle())}
	if wanted.Annotations == nil {
		wanted.Annotations = map[string]string{}
	}
	wanted.Annotations[descriptionKey] = description
	return wanted
}

func (r *reconciler) create(ctx context.Context, namespace string) error {
	fresh := r.wanted(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: mapName}})
	_, err := r.client.CoreV1().ConfigMaps(namespace).Create(ctx, fresh, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return fmt.Errorf("cannot create config map %s/%s: %w", namespace, mapName, err)
}
