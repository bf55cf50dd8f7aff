// Package adapter is the storage backend of the API machinery (storage.Interface) over the store's index and engine.
//
// Reads come from the index; only lists at a revision that the index has left behind are read from the engine's history. A write is
// one conditional transaction, and returns once the index has it, so that whoever wrote can read what they wrote. Objects in the
// index are shared by all readers: single gets and updates hand out deep copies, lists and watches hand out what is shared, as the
// upstream watch cache does.
package adapter
