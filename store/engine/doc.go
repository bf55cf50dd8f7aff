// Package engine is the durable log under the store: ordered revisions, transactions, history and leases.
//
// Engine is all that the rest of the store knows of it. The implementation, Open, is an etcd member run in this process and called without
// a socket; with Config.Peers it is one of several, which meet over a listener of theirs. Seat is an Engine in which one member follows another. Duties of a caller:
//
//  1. One process owns a directory; Open refuses a second one with ErrLocked.
//  2. Close what Open returned, also after Failed was closed.
//  3. When Failed is closed the engine serves nothing any more: close it and open a new one.
//  4. Call Compact from time to time; nothing here does so by itself, and nothing here writes while nobody asks.
package engine
