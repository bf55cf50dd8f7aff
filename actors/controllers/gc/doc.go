// Package gc deletes what has lost its owners, and carries out foreground and orphaning deletion.
//
// The keys of this controller are uids of objects that need attention: those with an absent or a leaving owner, and those that
// wait for their dependents. need.go names them from the metadata of every stored object, so an object with healthy owners costs
// a look into memory and no actor.
//
// # Rules
//
//   - An owner is absent when no object of its uid, kind and name exists in the dependent's reach: its own namespace or none.
//     What the metadata view does not know is asked of the API, which also serves kinds that are stored elsewhere.
//   - A namespaced owner named by a cluster-scoped object cannot be resolved; such an object is never collected for it.
//   - An object with one present owner stays and loses the references to absent and leaving ones.
//   - An object without a present owner goes: in the foreground when a leaving owner waits for it and it has dependents itself,
//     else as its own finalizers ask, else in the background.
//   - Every delete and patch names the uid and the revision it was decided from, so a decision on an older state is refused.
package gc
