// Package lease decides which node tends which manifest: it is a pure step from an event to actions, without clock, goroutine or I/O.
//
// Each node has one session, which it renews; each manifest has one lease, held by a session under an epoch. Whatever a reconciler
// writes carries the epoch as a fence, and the store refuses an older one. So two nodes may for a moment believe that they hold the
// same manifest, but what the older one does is never accepted after the younger one has begun.
//
// # What is where
//
//   - Proof is what a node knows of its own session, Authority what the lease authority knows of all.
//   - Record is a lease, Fence what a write carries, Store where leases last; Memory is a Store that does not outlive its process.
//   - Node is all that one node decides: it renews, takes what is free or whose holder is gone, gives away what is above its share,
//     cancels work in time, and stops gracefully.
//   - Shared is what many nodes of one process, as in a simulation, need not all keep or work out for themselves.
//
// # The caller's duties
//
//  1. Feed every event to Node.Step with the monotonic time at which it happened, one at a time, and carry out the actions in the order
//     given. Feed Tick every TickEvery.
//  2. Ask Node.Start before each reconcile, give the fence it returns to every write, and call it off when Cancel says so. Feed Done when
//     it has ended, also when it was called off: what has not ended is never given away. Feed Abandoned when it will not end, and
//     Fenced when a write was refused.
//  3. Answer every Append with Answered: applied, refused, or unknown when no answer came. Unknown is always safe.
//  4. Tell of a Manifest before its record. Feed every change of a record (Observed), and after a gap of the watch what there is.
//  5. Feed the sessions the authority names (Sessions) and what membership says of sessions (Verdict). Both may be wrong or late.
//
// # What a durable Store must promise
//
// One transaction compares and writes: CompareAndAppend the revision of the record, WriteFenced the fence against the record. What
// was answered is on the disk. A record is never removed; to save room an implementation may fold the records of manifests that are
// gone into one floor, and then answers for them with a free record of that epoch. After a restore from a snapshot every
// lease goes through Restored before anybody may write. Package leasetest holds an implementation to all but the disk. An
// implementation on etcd compares the mod revision of a record's key in the transaction that writes the object; one on bbolt does both in one
// update. Their sessions are leases of the engine, or an Authority in the process that holds the file.
//
// # Glossary
//
// A manifest is live while it exists. A record is takeable when it is free or its holder is gone. A session is gone when it ran out, was
// ended, was declared dead, or is an earlier boot of one's own node. The fair share is live manifests by live nodes, rounded up. A
// leaving session still holds leases and gets no more.
package lease
