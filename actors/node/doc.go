// Package node is the root of one host: it reads the catalog, builds the whole
// supervision tree from it, boots it in order and stops it in order.
//
// The caller's duties:
//
//  1. Validate the Config and take the data directory (Lock) before Run.
//  2. Run blocks until its context ends or the tree gives up; it never exits the
//     process and never stops a container on its own.
//  3. One Node per data directory; several nodes may live in one process or on one
//     host as long as directories, addresses and cgroup roots differ.
//
// Glossary: a child is an actor with a row in the catalog; a row without a
// constructor here, or a constructor without a row, fails a test.
package node
