// Package gossip is this host's membership in the cluster: SWIM by memberlist, encrypted from
// the first start, and healed after partitions by rejoining every peer that was ever known.
//
// Member is the actor that owns the memberlist of one host; Rejoin is the actor that redials.
// Both publish and read the one View of the members. Nothing is decided in memberlist's
// callbacks: they run on its packet loop or under its lock, so they only leave a message, and
// the actor reads the whole list again. No change can be lost that way.
//
// A host takes a fresh member name at each boot (NodeName), so that what was said about its
// last life is not said about this one. Metadata is small and never state: see Meta.
package gossip
