// Package storage keeps the manifests of operators, their leases and the sessions of the processes that tend them.
//
// # Three stores, one contract
//
//   - Memory lasts as long as its process: for tests, under virtual time too, and for operators that may forget.
//   - OpenBolt keeps all in one file that one process has open.
//   - OpenShared lets several processes of one host work on one directory: one of them has the file open and serves the others over a
//     socket, and when it dies another one does.
//
// Package storagetest holds all three to what Store promises.
//
// # The caller's duties
//
//  1. Call what may wait (all but Watch, WatchSessions and the feeds' Take) from a job, never from Receive. Memory never waits.
//  2. Keep notify short: it runs in whoever wrote. It may call Take, and must not call anything else of the store.
//  3. Read first and Watch from the revision that the read returned: then nothing is missed.
//  4. Take an error that is none of the sentinels for an unknown outcome: what was asked for may have been done. Read, and decide anew.
//  5. Close feeds, and the store last.
package storage
