// Package supervision runs every long-lived part of the product as an actor under one
// explicit tree, and decides by declared policy what happens to it on each fault.
//
// The caller's duties:
//
//  1. Describe the tree as Specs (usually rows of the catalog) and Start it on a System.
//  2. Never block in Receive. Blocking work goes into Context.Go and comes back as a
//     JobDone message to the generation that started it.
//  3. Open resources when Started arrives, release them when Stopping arrives; build only
//     the struct in Spec.Start, which may be called many times.
//  4. Make messages idempotent or acknowledged: a restart loses the mailbox.
//  5. Check the Fence before effects that must not come from an abandoned generation.
//
// Receive is called by one goroutine at a time for one generation; everything on System,
// Ref, PoolRef and Group may be called from any goroutine.
//
// Glossary: a child is an actor at a path; a generation is one life of it; a fault is a
// panic, hang, error return or bind failure; a dead letter is a message nobody took; an
// abandoned generation is one that would not stop: it is fenced and left behind.
package supervision
