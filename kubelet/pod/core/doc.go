// Package core decides what happens to one pod: a pure state machine without clock, goroutine or input and output.
//
// The owner (package pod) feeds it facts as method calls named after what happened (SandboxCreated, ContainerExited,
// ProbeDone, ...), each with the time it happened at, then calls [Machine.Step] and carries out the actions it returns.
// [Machine.Status] writes down, at any time, what the API shall say about the pod.
//
// The caller's duties:
//
//  1. Report the outcome of every action exactly once; until then the machine takes it as under way and does not ask
//     for it again.
//  2. Call Step after each fact and again at the time Step names.
//  3. Use one machine from one goroutine.
//
// Glossary: a run is one attempt of a container; a sidecar is an init container with restartPolicy Always; terminal
// means that no container of the pod will ever run again.
package core
