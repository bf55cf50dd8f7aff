// Package cache is the versioned read side of the control plane: typed objects, owners and placements read straight from the store's index.
//
// The store keeps stored bytes; this package gives them back as the external v1 types of client-go, decoded at most once per stored
// version and shared by every reader of the process.
//
// # Duties of the caller
//
//  1. Treat every object as immutable. Change a DeepCopy.
//  2. Run exactly one Cache.Run per cache, as a job of a supervised actor. Typed reads work without it; indexes and feeds do not.
//  3. Call Sync before deciding from an index (owners, nodes, metadata) about something you may have written yourself.
//  4. On ErrLost from a Feed, list again: changes were dropped.
//
// # What may run in parallel
//
// Everything except Run. A restarted Run re-lists and tells feeds the difference, so no change is lost over a restart.
//
// # Glossary
//
//   - Record: one stored version of one object, decoded lazily.
//   - Meta: the part of an object's metadata that garbage collection needs, for every resource, custom ones included.
//   - Feed: the changes of some kinds, in revision order, with the object before and after.
//   - Applied: the newest revision the indexes and feeds have seen.
package cache
