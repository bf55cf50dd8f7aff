// Package strategy decides which replicas managed sets have: it is pure behind its Context, without clock, goroutine or I/O.
//
// A managed set is a number of replicas of one shape. What a user declares (Spec) is folded into what is stored (Durable), and at each
// tick the kernel asks four strategies what is to change of the stored state and which replicas they want:
//
//   - Baseline wants what is realized.
//   - GracefulReconfiguration wants a target beside it, and cuts over when the target is hydrated or its deadline says so.
//   - HydrationBurst wants one replica of another size while no steady one is hydrated.
//   - OnRefresh wants one replica while something is to be refreshed, and none otherwise.
//
// Of each shape there are as many replicas as the strategy wants that wants the most: wishes add up to a maximum, not to a sum, and no
// strategy can take away what another wants.
//
// # A tick
//
//  1. Update state. All sets are read, and of them those live signals that a strategy requests. The writes of all strategies about a
//     set are merged field by field and applied as one batch, guarded by the state they were decided from (Witness).
//  2. If a batch was issued, all is read again.
//  3. Desired replicas. The clock is read again. Wishes are united, compared with what is there, and the creates and drops of a set are
//     applied as one batch, guarded in the same way. A set whose first batch was not applied is left out.
//
// Nothing is tried twice within a tick, and where there is nothing to do nothing is applied. When a batch finds no room, at most one
// strategy of the set is given up: the burst before the reconfiguration, the baseline never.
//
// # What holds
//
//   - Nothing is kept between ticks. Whoever is stopped anywhere goes on from what is stored.
//   - The realized config is what serves: it changes in one write, when its successor is hydrated or was forced, and until then all its
//     replicas are wanted.
//   - What was decided from an old state changes nothing once a spec is newer: its batch is rejected, and the next tick decides anew.
//   - Creates are known by names and drops by identities, so that doing a batch again does nothing.
//   - Of a surplus those replicas go first that are not hydrated, then the youngest.
//
// # The caller's duties
//
// The kernel is meant for an actor that ticks it, and for a kind that is served; both are in ../controllers/replicagroup, with an actor for
// each set. Whoever ticks it has to:
//
//  1. Be the only one: one actor for all sets, under a lease whose epoch goes with each write, or one per set under its own lease.
//  2. Tick every DefaultInterval, and at once when a spec, a replica or its readiness has changed. Where all of that wakes, a set need be
//     ticked only as long as something is in progress or lacks room, and at its deadline and the edges of its refresh window. Tick never
//     waits; run it as a job where reading may take long.
//  3. Give a Context. ManagedSets and States come from a cache that has seen the actor's own last write; before States returns a set
//     whose generation is newer than the folded one, the actor stores Fold of it by compare-and-append. Ready is the signal of
//     hydration. Now is the wall clock: deadlines and stamps are stored and outlive the process. Names that are in use still, as those of
//     replicas on their way out are, are Taken.
//  4. Apply a batch in one transaction that compares Expected, or, where replicas are objects of their own, write the state by
//     compare-and-append first and then make and remove replicas: names and identities make it safe to stop in between. Where no more may
//     be made the batch is Exhausted; where what was made finds no place the state has NoRoom.
//  5. Store Audits as Events, log and count what Report says, and raise an alarm for its conflicts.
//  6. Wrap the Context in an Observer whose flag makes it look only.
//
// The kind holds Spec in its spec and the rest of Durable in its status, with Fold's record as durable as the spec itself; View is what
// its columns and its description show, and Settled is what a client that waits asks. Its times have microseconds.
//
// # Glossary
//
// A replica is hydrated when it is online and its objects, transient ones aside, have caught up. Realized is what serves now, target what
// a set is on its way to. A tombstone is a record that tells what became of the last change. To shed is to give up replicas that somebody
// would like but nobody needs. A refresh object is something that is computed anew on a schedule; its frontier is up to when it is
// complete. A template is what replicas are made from; versions of it are shapes.
package strategy
