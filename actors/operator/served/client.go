package served

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/nodeactor/nodeactor/actors/operator"
)

// ErrNotServed is returned when something is asked for that only a pass inside a node has: the operator runs standalone, or the context is not
// that of a pass.
var ErrNotServed = errors.New("the context is not that of a pass inside a node")

// clientsKey finds the clients in the context of a pass.
type clientsKey struct{}

// clients are an operator's ways to the API.
type clients struct {
	config     *rest.Config
	dynamic    dynamic.Interface
	kubernetes kubernetes.Interface
	resource   Resource
}

func newClients(config *rest.Config, r Resource) (*clients, error) {
	c := &clients{config: config, resource: r}
	var err error
	if c.dynamic, err = dynamic.NewForConfig(dynamic.ConfigFor(config)); err != nil {
		return nil, fmt.Errorf("cannot make a client for the operator of %s: %w", r.Kind, err)
	}
	if c.kubernetes, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("cannot make a client for the operator of %s: %w", r.Kind, err)
	}
	return c, nil
}

func clientsOf(ctx context.Context) (*clients, error) {
	c, ok := ctx.Value(clientsKey{}).(*clients)
	if !ok {
		return nil, fmt.Errorf("cannot give a client: %w", ErrNotServed)
	}
	return c, nil
}

// Config is the configuration of a client of this node's API for the pass that a context belongs to. It is the caller's own. Requests have to
// be made with the context of the pass.
func Config(ctx context.Context) (*rest.Config, error) {
	c, err := clientsOf(ctx)
	if err != nil {
		return nil, err
	}
	return rest.CopyConfig(c.config), nil
}

// Client is a client of this node's API for objects of any kind.
func Client(ctx context.Context) (dynamic.Interface, error) {
	c, err := clientsOf(ctx)
	if err != nil {
		return nil, err
	}
	return c.dynamic, nil
}

// Kubernetes is a client of this node's API for the built-in kinds.
func Kubernetes(ctx context.Context) (kubernetes.Interface, error) {
	c, err := clientsOf(ctx)
	if err != nil {
		return nil, err
	}
	return c.kubernetes, nil
}

// Owner is the reference by which an object belongs to the manifest of a pass: it is its controller, and when the manifest goes, so does the
// object.
func Owner(ctx context.Context, m operator.Metadata) (metav1.OwnerReference, error) {
	c, err := clientsOf(ctx)
	if err != nil {
		return metav1.OwnerReference{}, err
	}
	yes, gvk := true, c.resource.groupVersionKind()
	return metav1.OwnerReference{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: m.Name, UID: types.UID(m.UID), Controller: &yes, BlockOwnerDeletion: &yes,
	}, nil
}
