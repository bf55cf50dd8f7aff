package replicagroup

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
)

// world is all that the actor reads and writes; a fake of it is a cluster.
type world interface {
	// Group reads a group; false when there is none. It has the actor's own last write.
	Group(key kube.Key) (*Group, bool, error)
	// Size reads a SizeClass; false when there is none.
	Size(name string) (Size, bool, error)
	// Pods reads the pods that a group controls; they are shared.
	Pods(ctx context.Context, owner types.UID) ([]*corev1.Pod, error)
	// Pod reads a pod by its name.
	Pod(namespace, name string) (*corev1.Pod, bool)
	// Revision reads a version of a group's template, Revisions those that there are; they are shared.
	Revision(namespace, name string) (*appsv1.ControllerRevision, bool)
	Revisions(ctx context.Context, owner types.UID) ([]*appsv1.ControllerRevision, error)

	// Fresh reads a group from the API.
	Fresh(ctx context.Context, key kube.Key) (*Group, error)
	// PutStatus stores the status of exactly the version of a group that it was read from; a conflict when there is a newer one.
	PutStatus(ctx context.Context, g *Group) (*Group, error)
	CreatePod(ctx context.Context, pod *corev1.Pod) error
	// DeletePod deletes exactly this pod, not one that came after it under its name.
	DeletePod(ctx context.Context, namespace, name string, uid types.UID) error
	CreateRevision(ctx context.Context, revision *appsv1.ControllerRevision) error
	DeleteRevision(ctx context.Context, revision *appsv1.ControllerRevision) error
}

// cluster is the world of a node: it reads from the cache and writes through the API.
type cluster struct {
	cache  *cache.Cache
	client kubernetes.Interface
}

func (c cluster) Group(key kube.Key) (*Group, bool, error) {
	record, ok := c.cache.Record(Kind, key.Namespace, key.Name)
	if !ok {
		return nil, false, nil
	}
	var g Group
	if err := decode(record, &g, "replica group "+key.String()); err != nil {
		return nil, false, err
	}
	g.ResourceVersion = strconv.FormatInt(record.ModRevision, 10)
	return &g, true, nil
}

func decode(record cache.Record, into any, what string) error {
	if err := json.Unmarshal(record.Value, into); err != nil {
		return fmt.Errorf("cannot read %s: %w", what, err)
	}
	return nil
}

func (c cluster) Size(name string) (Size, bool, error) {
	record, ok := c.cache.Record(SizeKind, "", name)
	if !ok {
		return Size{}, false, nil
	}
	var class SizeClass
	err := decode(record, &class, "size class "+name)
	return class.Spec, err == nil, err
}

func (c cluster) Pods(ctx context.Context, owner types.UID) ([]*corev1.Pod, error) {
	if err := c.cache.Sync(ctx); err != nil {
		return nil, err
	}
	return controlled(cache.Owned[*corev1.Pod](c.cache, owner), owner), nil
}

func (c cluster) Pod(namespace, name string) (*corev1.Pod, bool) {
	return cache.Get[*corev1.Pod](c.cache, namespace, name)
}

func (c cluster) Revision(namespace, name string) (*appsv1.ControllerRevision, bool) {
	return cache.Get[*appsv1.ControllerRevision](c.cache, namespace, name)
}

func (c cluster) Revisions(ctx context.Context, owner types.UID) ([]*appsv1.ControllerRevision, error) {
	if err := c.cache.Sync(ctx); err != nil {
		return nil, err
	}
	return controlled(cache.Owned[*appsv1.ControllerRevision](c.cache, owner), owner), nil
}

// controlled keeps those whose controller is owner; others only name it.
func controlled[T metav1.Object](all []T, owner types.UID) []T {
	return slices.DeleteFunc(all, func(o T) bool { return !controls(owner, o) })
}

func controls(owner types.UID, o metav1.Object) bool {
	ref := metav1.GetControllerOfNoCopy(o)
	return ref != nil && ref.UID == owner
}

func pathOf(key kube.Key) string {
	return fmt.Sprintf("/apis/%s/namespaces/%s/%s/%s", GroupVersion, key.Namespace, Kind.Resource.Resource, key.Name)
}

func (c cluster) Fresh(ctx context.Context, key kube.Key) (*Group, error) {
	text, err := c.client.Discovery().RESTClient().Get().AbsPath(pathOf(key)).Do(ctx).Raw()
	return parsed(text, err)
}

// PutStatus sends of the object what the API looks at when a status is replaced.
func (c cluster) PutStatus(ctx context.Context, g *Group) (*Group, error) {
	sent := Group{
		TypeMeta:   metav1.TypeMeta{APIVersion: GroupVersion.String(), Kind: Kind.Name},
		ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: g.Name, UID: g.UID, ResourceVersion: g.ResourceVersion},
		Spec:       g.Spec, Status: g.Status,
	}
	body, err := json.Marshal(sent)
	if err != nil {
		return nil, fmt.Errorf("cannot write the status of replica group %s/%s: %w", g.Namespace, g.Name, err)
	}
	text, err := c.client.Discovery().RESTClient().Put().AbsPath(pathOf(kube.Key{Namespace: g.Namespace, Name: g.Name})+"/status").
		SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Raw()
	return parsed(text, err)
}

func parsed(text []byte, err error) (*Group, error) {
	if err != nil {
		return nil, err
	}
	var g Group
	if err := json.Unmarshal(text, &g); err != nil {
		return nil, fmt.Errorf("cannot read a replica group: %w", err)
	}
	return &g, nil
}

func (c cluster) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	_, err := c.client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

func (c cluster) DeletePod(ctx context.Context, namespace, name string, uid types.UID) error {
	return unlessGone(c.client.CoreV1().Pods(namespace).Delete(ctx, name, *metav1.NewPreconditionDeleteOptions(string(uid))))
}

// unlessGone takes no offence at the deletion of what is gone, or is another one by now.
func unlessGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

func (c cluster) CreateRevision(ctx context.Context, revision *appsv1.ControllerRevision) error {
	_, err := c.client.AppsV1().ControllerRevisions(revision.Namespace).Create(ctx, revision, metav1.CreateOptions{})
	return err
}

func (c cluster) DeleteRevision(ctx context.Context, revision *appsv1.ControllerRevision) error {
	return unlessGone(c.client.AppsV1().ControllerRevisions(revision.Namespace).Delete(ctx, revision.Name, *metav1.NewPreconditionDeleteOptions(string(revision.UID))))
}
