//go:build race

package replicagroup

// slowdown is by how much fewer storms there are.
const slowdown = 10
