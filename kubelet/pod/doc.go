// Package pod is the actor of one pod on its node: it owns the pod's sandbox, network, volumes, images, containers,
// probes, restarts and end, and tells the API about them.
//
// What to do is decided by the pure machine of package core; the actor carries it out as jobs and reports back. Every
// call to the runtime, the network, the disk or the API is a job with a deadline; nothing blocks in Receive.
//
// The owner's duties:
//
//  1. Put the pod into the [Table] before its actor starts, and keep it there: a restarted actor reads it anew.
//  2. Send [Update] for each newer version, [Removed] when the API has the pod no more, [Observed] after each relist
//     and [Exited] for each exit event. All may be repeated.
//  3. On [Gone], stop the actor and forget the pod.
//
// Stopping the actor leaves the pod running. A later actor adopts what the runtime still has.
package pod
