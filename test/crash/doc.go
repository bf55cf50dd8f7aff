// Package crash kills the daemon without warning while many clients write, and then asks whether everything that was
// acknowledged is still there. It drives the real binary over HTTPS.
//
// The test command runs a few rounds; `make crash` runs a thousand. CRASH_ROUNDS sets the number, CRASH_SEED repeats the
// choices of an earlier run (not its timing).
package crash
