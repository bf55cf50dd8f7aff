// Package operators tries operators in several processes on one store: processes that are stopped and go on, that are killed, that leave and that
// come. The test binary itself is the program that they run.
//
// `go test` makes a few trials in half a minute; `make trials` makes a thousand.
package operators
