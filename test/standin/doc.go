// Package standin fills the product's tree with stand-ins: actors that live, work and fail as
// the product's own do, on a store and a network that are fakes.
//
// The tree is the product's (actors/node Blueprint): its shape, windows, budgets and policies.
// A World is what the stand-ins of one tree share: a test tells it what is to go wrong where.
package standin
