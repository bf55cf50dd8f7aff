package operator

import (
	"errors"

	"github.com/nodeactor/nodeactor/actors/operator/engine"
	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/cluster/lease"
)

// ErrFenced is returned when an effect comes too late: somebody else has the manifest's lease, or this pass was given up for hanging. It
// is no failure of the manifest. Stop and return; whoever has the lease goes on.
var ErrFenced = lease.ErrFenced

// ErrKindTaken is returned when a second operator of the same kind is to run in one execution, or a control plane that executes already.
var ErrKindTaken = errors.New("the kind has an operator already")

// ErrNotFound is returned when there is no manifest of that kind and name.
var ErrNotFound = errors.New("there is no such manifest")

// ErrDeleting is returned when a manifest is added again whose deletion has been asked for and has not come to its end.
var ErrDeleting = errors.New("the manifest is being deleted")

// ErrSpecification is returned when a Go type cannot be a specification; its text names the field.
var ErrSpecification = errors.New("not a type for specifications")

// ErrUndeclaredRead is returned when an operator reads a kind that is not among its declared reads. Name it in OperatorConfig.Reads.
var ErrUndeclaredRead = errors.New("the operator does not declare this read")

// ErrNotInPass is returned when something is asked for that only the context of a pass can give.
var ErrNotInPass = errors.New("the context is not that of a pass")

// ErrTooLarge is returned when a specification or status is larger than a manifest may be.
var ErrTooLarge = storage.ErrTooLarge

// ErrName is returned when a namespace or name has characters that none may have.
var ErrName = storage.ErrName

// ErrManifestChanged is returned when a pass changed what belongs to the user: name, namespace or specification. Nothing else of the
// pass is stored.
var ErrManifestChanged = errors.New("only the status, conditions and finalizers are the operator's to change")

// ErrRequeuePast is returned when a pass asks to run again at a time that has passed. Ask for a positive duration.
var ErrRequeuePast = engine.ErrRequeuePast

// errRecord is returned when what is stored is no manifest.
var errRecord = errors.New("what is stored is no manifest")
