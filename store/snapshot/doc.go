// Package snapshot keeps copies of the store that can be trusted: it saves, lists, verifies and removes them, and makes a store from one.
//
// A snapshot is a file in etcd's own format, the bytes of the database and behind them their SHA-256, so that etcd's tools read it too. It is
// written under a temporary name, proved page by page, brought to disk and renamed: a file that has its name is whole. Its name tells when it
// was saved, the revision and why:
//
//	20060102T150405Z-4711-periodic.db
//
// Duties of a caller: Settle before a store is opened, so that a restore that was interrupted is ended. Nothing here runs by itself.
package snapshot
