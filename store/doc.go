// Package store holds the objects of the cluster: a durable log, an index in memory, events in order, and a storage backend for
// the API machinery on top.
//
// Duties of a caller:
//
//  1. Open with the directory nobody else uses; Close in the end. When Failed is closed the engine is lost: Reopen brings the next one.
//  2. Call Tend whenever AwaitDue returns: it forgets history, and makes room. Nothing happens by itself and a quiet store writes nothing.
//  3. Items and the objects cached on them are shared and never change. Copy before you change anything.
//  4. On ErrCompacted and ErrOverflow list again and subscribe from the revision of that list.
//
// Subpackages: engine is the log (the only one to import etcd), index the memory, adapter the storage.Interface, ledger the
// node-local record that needs no cluster, snapshot keeps copies of the store and makes a store from one.
package store
