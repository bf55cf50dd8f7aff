package operator

import "context"

// Operator brings what a specification declares about. One value serves all manifests of its kind, so it must be safe for parallel use.
type Operator[S Specification] interface {
	// Reconcile runs one pass: it brings one manifest closer to what it declares, and says when it wants to be asked again. It is called
	// with a copy; what it changes through the state's methods is stored when it returns nil. An error stores nothing of the pass but
	// the failure, and the pass is run again after the back-off.
	//
	// The context ends when the pass has had its time, when the manifest's lease is lost, and when the process stops: return then. It
	// carries the fence of the lease (Fence, Fenced) and what Get and List read from.
	Reconcile(ctx context.Context, state *ManifestState[S]) (Action, error)
}

// Finalizer is implemented by operators that have something to undo when a manifest is deleted. A manifest of such an operator is held by
// a finalizer from before its first pass until Finalize has returned nil.
type Finalizer[S Specification] interface {
	// Finalize undoes what was done for a manifest whose deletion was asked for. It must bear being run again: it is retried until it
	// returns nil, and run once more if the process dies before that is stored. It is never run after that.
	Finalize(ctx context.Context, state *ManifestState[S]) error
}

// Func is an Operator of one function.
type Func[S Specification] func(ctx context.Context, state *ManifestState[S]) (Action, error)

// Reconcile implements Operator.
func (f Func[S]) Reconcile(ctx context.Context, state *ManifestState[S]) (Action, error) {
	return f(ctx, state)
}
