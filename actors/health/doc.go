// Package health answers /livez, /readyz, /healthz and /metrics from the supervision
// tree: it reads what is, and asserts nothing.
//
// The caller's duties: give it the tree and a linearizable read of the store; mount
// Handler on the four paths; call Drain before anything is stopped, so that /readyz fails
// first.
//
// A check passes only for a child that is running and not hung. The reason of a failure
// goes to the log, not to the client.
package health
