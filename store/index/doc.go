// Package index is the store's memory: every stored object, by key, in copy-on-write trees, and the events that led there.
//
// One writer applies batches of changes in revision order. Readers take snapshots that never change. Subscribers read events from a
// ring per resource, gap-free and in revision order; what the ring has dropped is read from the engine's history.
//
// Glossary:
//
//	Item       one stored version of one object; immutable, shared by everyone.
//	form       a decoded object cached on an item, one per decoder.
//	resource   the directory of keys of one kind, e.g. /registry/pods/; it has its own tree and ring.
//	parked     a decoded object waiting, under its key, for its own write to come back from the log.
package index
