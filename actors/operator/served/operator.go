package served

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator"
)

// ErrUnknownKind is returned when an operator reads, or owns, a kind that this node cannot tell it of.
var ErrUnknownKind = errors.New("the kind is not known")

// Operator is an operator bound to its kind. It is ready to be served once.
type Operator struct {
	resource   Resource
	definition *apiextensionsv1.CustomResourceDefinition
	tree       *structural.Structural
	cfg        operator.OperatorConfig
	owned      []cache.Kind
	passes     passes
}

// passes is what depends on the type of the specification.
type passes struct {
	pass   func(ctx context.Context, rec operator.Record, env operator.Env) operator.Outcome
	due    func(rec operator.Record, now time.Time) time.Time
	record func(*object) operator.Record
}

// Option changes how an operator is served.
type Option func(*Operator) error

// Owning declares that the operator makes objects of built-in kinds, in this node's words such as ConfigMap or apps/Deployment, and makes its
// manifests their controllers (Owner): a change of such an object wakes its manifest.
func Owning(kinds ...string) Option {
	return func(o *Operator) error {
		for _, name := range kinds {
			group, kind, ok := strings.Cut(name, "/")
			if !ok {
				group, kind = "", name
			}
			known, ok := cache.KindNamed(schema.GroupKind{Group: group, Kind: kind})
			if !ok {
				return fmt.Errorf("cannot watch what the operator of %s owns: %s: %w; name built-in kinds, with their group, such as apps/Deployment", o.Kind(), name, ErrUnknownKind)
			}
			o.owned = append(o.owned, known)
		}
		return nil
	}
}

// Bind derives from the type of an operator's specification how it is served. An error names the field for which that cannot be done
// (operator.ErrSpecification, schema.ErrNoSchema), or what the API would refuse of the definition (ErrDefinition).
func Bind[S operator.Specification](op operator.Operator[S], cfg operator.OperatorConfig, opts ...Option) (*Operator, error) {
	runner, err := operator.NewRunner(op, cfg)
	if err != nil {
		return nil, err
	}
	var zero S
	o := &Operator{cfg: runner.Config(), passes: passes{runner.Pass, runner.Due, recordOf[S]}}
	if o.resource, err = resourceOf(zero); err != nil {
		return nil, err
	}
	if o.definition, o.tree, err = define(o.resource, reflect.TypeFor[S]()); err != nil {
		return nil, err
	}
	for _, opt := range opts {
		if err := opt(o); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// Kind is the kind of the operator's manifests.
func (o *Operator) Kind() string { return o.resource.Kind }

// Resource is how the API names the kind.
func (o *Operator) Resource() Resource { return o.resource }

// Definition is the definition of the kind, as it is applied. It is the caller's own.
func (o *Operator) Definition() *apiextensionsv1.CustomResourceDefinition {
	return o.definition.DeepCopy()
}

// Check refuses operators that cannot run together: two of one kind, or of one name in the API or the tree (operator.ErrKindTaken), and reads
// of kinds that none of them serves (ErrUnknownKind). taken are names of controllers that there are already.
func Check(ops []*Operator, taken ...string) error {
	kinds, names := map[string]*Operator{}, map[string]bool{}
	for _, o := range ops {
		if kinds[o.Kind()] != nil || names[o.resource.name()] || slices.Contains(taken, o.name()) {
			return fmt.Errorf("cannot serve kind %s as %s: %w", o.Kind(), o.resource.name(), operator.ErrKindTaken)
		}
		kinds[o.Kind()], names[o.resource.name()] = o, true
		taken = append(taken, o.name())
	}
	for _, o := range ops {
		for _, read := range o.cfg.Reads {
			if kinds[read.Kind()] == nil {
				return fmt.Errorf("cannot serve kind %s: it reads %s, which no operator of this node serves: %w", o.Kind(), cmp.Or(read.Kind(), "nothing"), ErrUnknownKind)
			}
		}
	}
	return nil
}

// name is the operator's segment in the tree.
func (o *Operator) name() string { return o.resource.Singular }
