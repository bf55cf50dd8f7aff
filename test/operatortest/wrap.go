package operatortest

import (
	"context"

	"github.com/nodeactor/nodeactor/actors/operator"
)

// around is called in place of an operator's own code, which it calls by do.
type around[S operator.Specification] func(ctx context.Context, state *operator.ManifestState[S], do func() error) error

// wrap lets code run around an operator's; what it returns has a Finalize method if the operator has one.
func wrap[S operator.Specification](op operator.Operator[S], f around[S]) operator.Operator[S] {
	w := wrapped[S]{op, f}
	if finalizer, ok := op.(operator.Finalizer[S]); ok {
		return finalizing[S]{w, finalizer}
	}
	return w
}

type wrapped[S operator.Specification] struct {
	op     operator.Operator[S]
	around around[S]
}

// Reconcile implements operator.Operator.
func (w wrapped[S]) Reconcile(ctx context.Context, state *operator.ManifestState[S]) (action operator.Action, err error) {
	err = w.around(ctx, state, func() (err error) {
		action, err = w.op.Reconcile(ctx, state)
		return err
	})
	return action, err
}

type finalizing[S operator.Specification] struct {
	wrapped[S]
	finalizer operator.Finalizer[S]
}

// Finalize implements operator.Finalizer.
func (f finalizing[S]) Finalize(ctx context.Context, state *operator.ManifestState[S]) error {
	return f.around(ctx, state, func() error { return f.finalizer.Finalize(ctx, state) })
}
