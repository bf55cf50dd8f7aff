// Package shim is the C part of the helper binary: the processes that stay when the Go part has done its work.
//
// A Go process that only waits costs 2 MB of private memory; the same binary, executed again with one of the names
// below as argv[0], is caught by a C constructor before the Go runtime starts and costs 0.1 MB. Importing the package is
// all that is needed. Children and open files survive the exec, which is how a helper hands its container over.
package shim

// #cgo CFLAGS: -O2 -Wall -Wextra
// #cgo LDFLAGS: -static
import "C"

// The names that select a C main function, given as argv[0].
const (
	// NameShim keeps one container: see pump.c for its arguments.
	NameShim = "nodeactor-shim"
	// NameWait waits for one exec'd process: arguments are its pid and the descriptor for the result.
	NameWait = "nodeactor-wait"
	// NamePause is pid 1 of a shared process namespace; it reaps and does nothing else. It is a path: this is
	// where its container has the binary.
	NamePause = "/nodeactor-pause"
)
