//go:build !race

package strategy

// slowdown is by how much fewer storms there are.
const slowdown = 1
