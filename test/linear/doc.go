// Package linear judges what clients of the store were told: whether there is an order of all they did in which each answer is right, and
// which no one who waited for an answer could contradict. It holds the record of a run and the models; the runs are tests.
//
// The tests of this package drive three members, each a process of its own, that are killed, stopped and cut off from one another. The
// same models judge a whole node that is killed, in test/crash.
//
// LINEAR_SECONDS is how long the disturbance lasts, LINEAR_SEED repeats the choices of an earlier run (not its timing).
package linear
