// Package runtime runs pods on this host: namespaces, cgroups, containers, their output and their exit codes.
//
// The daemon links this package; the package does not link libcontainer. Everything that touches namespaces, mounts
// or cgroups happens in a short-lived helper process (cmd/nodeactor-runtime) that has a deadline and is killed when it
// exceeds it, so that no hung mount or frozen cgroup can hang the daemon. A started container is kept by its shim: the
// helper that started it, turned into a waiter of 0.1 MB that writes the log, reaps the process and leaves an exit file.
//
// Duties of the caller:
//
//  1. [Open] once per run directory, then [Engine.Recover] before anything else.
//  2. Run [Engine.Poll] for as long as the Engine is used; without it no [Event] is delivered. [Engine.List] is right
//     even then: it looks at every process itself.
//  3. Treat [Event] as a hint and List as the truth. Events may be dropped when nobody reads them.
//  4. Use a fresh container id for each attempt, and remove what exited when its record is no longer wanted.
//  5. Mutating calls on one pod are serialised here, those on different pods run in parallel. Every call ends with its
//     context; every call also has a deadline of its own.
//
// Glossary: a sandbox is what the containers of one pod share (pinned namespaces, /dev/shm, the pod's cgroup); a shim is
// the parent process of one container; a record is what the ledger knew before the act it describes.
package runtime
