// Package standin fills the product's tree with stand-ins: actors that live, work and fail as
// the product's own do, on a store and a network that are fakes.
//
// The tree is the product's (actors/node Blueprint): its shape, windows, budgets and policies.
// A World is what the stand-ins of one tree share. A test tells it what is to go wrong where,
// starts the tree, and finds in its journal what started and stopped, in which order.
package standin
