// Package operatortest tests operators: whole, on a few nodes with injected faults under virtual time, and on a thousand nodes.
//
//	func TestWebsites(t *testing.T) {
//		operatortest.Sim(t, websites{}, func(k *operatortest.Kit[Website]) {
//			k.Add("a", Website{Domain: "a.example.com"})
//			k.Add("b", Website{Domain: "b.example.com"})
//			k.Panic("a", 1)
//			k.AllReady()
//			k.Kill("node-1")
//			k.Advance(time.Minute)
//			k.AllReady()
//		})
//	}
//
// Sim executes the operator on three nodes, each a process of its own with the whole tree of actors, which share one store, and runs the test
// for many seeds: each lets happen what may happen in more than one order in another one, and is run twice, because nothing but the seed may
// decide. Time is virtual. Bubble runs a test once on real goroutines in a bubble of testing/synctest, for operators that wait for channels or
// connections. Fleet is for numbers.
//
// # What is judged
//
// Without a word of the test, each run fails when
//
//   - an actor panics, hangs or fails that the test has not told to, or one that it has told to does not;
//   - two passes of one manifest run at a time;
//   - the store accepts an effect of a lease after one of a later lease;
//   - in the end, when the network is whole again, a manifest is neither Ready nor Parked, or was deleted and is still there;
//   - a node does not stop in order, or leaves goroutines, timers or messages behind;
//   - two runs of one seed differ.
//
// # Rules for an operator under Sim
//
// Its passes must not wait for anything but the clock of the Kit and their context, start goroutines, or let anything but their manifest and
// the Kit's Rand decide: see package harness. To be given the clock an operator can be made by a function, see Of.
package operatortest
