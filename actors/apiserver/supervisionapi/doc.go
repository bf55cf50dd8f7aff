// Package supervisionapi has the Kubernetes kinds in which the supervision tree of a node is served: Actor and FaultPolicy of the group
// supervision.nodeactor.io, version v1alpha1. Both are read-only and never stored: the tree itself is the only copy.
//
// A program that reads them adds the kinds to its scheme with AddToScheme. The tag doc of a field is its description in OpenAPI.
package supervisionapi
