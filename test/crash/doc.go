// Package crash kills the daemon without warning while many clients write, and damages its files, and then asks whether everything that was
// acknowledged is still there, or what is not is said. It drives the real binary over HTTPS.
//
// The test command runs a few rounds and cases; `make crash` runs a thousand and 500. CRASH_ROUNDS and CRASH_CASES set the numbers, CRASH_SEED
// repeats the choices of an earlier run (not its timing). From a hundred cases on half of them are of a store whose log has been cut.
package crash
