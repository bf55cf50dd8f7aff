// Package sim runs the product's own tree, full of stand-ins (test/standin), under the seeded
// scheduler of test/harness: random faults, restarts by hand, floods, members that come and go,
// bad stores, jumps of the clock and stops in the middle of all that. After each change of a
// child's state the rules of supervision have to hold, and in the end everything has to run
// again, unless a budget that is really used up ended the tree.
//
// `go test ./test/sim` runs 10,000 seeds, each of them twice; `make sim` runs a million. A
// failure prints its trace and the command that repeats it.
package sim
