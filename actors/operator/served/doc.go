// Package served runs typed operators inside a node: their kinds are kinds of its API.
//
// Bind takes the same Operator[S] that runs standalone and derives from S a CustomResourceDefinition, whose schema is that of the Go type
// (package schema). Controllers makes of it what the built-in controllers are: a subtree controllers/<kind> with an actor per object, the same
// breaker, conditions, Events and metrics.
//
//	apiVersion: operators.nodeactor.io/v1
//	kind: Website
//	metadata: {name: one}
//	spec: …            what S encodes as
//	status:
//	  phase: Ready     Pending, Ready, Retrying, Parked, Deleting
//	  observedGeneration, attempts, lastError, nextTry
//	  conditions: …    the operator's own, and ReconcilerHealthy and HotLoop
//	  value: …         what the operator said by SetStatus
//
// # What a specification may say of its kind
//
// Each is a method of S without arguments that is asked of the zero value; all may be missing.
//
//	APIGroup() string        operators.nodeactor.io
//	APIVersion() string      v1
//	Plural() string          the kind in lower case and the plural
//	ShortNames() []string    none
//	ClusterScoped() bool     false: objects live in namespaces
//
// # Inside a pass
//
// Client, Kubernetes and Config give a client of the API to a pass by its context. Writes go through the breaker, so that an operator that
// writes in circles pauses like any other, and fail once the pass was given up. Owner makes the reference by which what the operator makes
// goes away with the manifest; Owning declares such kinds, whose changes wake the manifest that owns them.
//
// # What differs from standalone
//
//   - A pass is woken by changes of the manifest's specification, labels, annotations, deletion, and, while it is being deleted, finalizers;
//     changes of its status alone wake nobody.
//   - There is one writer, the node: the epoch of Fence is zero. Writes of a generation that was replaced are refused by the API.
//   - The status is written by the status subresource with the object's resourceVersion, finalizers by a patch with the same; a conflict
//     is settled on the newer version.
//
// # What becomes of bad behaviour
//
//	a pass returns an error           phase Retrying, lastError, nextTry; from five in a row on the condition ReconcilerHealthy is False
//	a pass runs out of time           the same; if it goes on regardless, its actor is given up, as after a panic
//	a pass panics                     the same, and its actor alone is restarted; in the end phase Parked, ReconcilerHealthy False
//	                                  (CrashLoopBackOff), Events; a change of the object brings the next try at once
//	a pass changes its manifest       an error (operator.ErrManifestChanged)
//	it asks to run in the past        an error (operator.ErrRequeuePast)
//	it writes in circles              its writes are refused and its passes wait for a while: condition HotLoop, an Event that names the writers
//	two operators of one kind         the program does not run: operator.ErrKindTaken
//	a type without a schema           the program does not run: schema.ErrNoSchema, with the path of the field
//	a program without the operator    definition and objects stay; a finalizer holds those that are deleted until an operator is there again
//
// # The definition
//
// It is applied at every start, and belongs to whoever made it: the label app.kubernetes.io/managed-by says so. A definition of that name
// that has another owner is left alone; the operator does not run, an Event and the condition OperatorServed of the definition say why,
// and so does the name of the job of controllers/<kind>/kinds. Once the definition is labelled or removed, the operator runs. A definition that is
// removed under a running operator takes its objects with it, and comes back at the next start, or restart of controllers/<kind>/kinds.
package served
