//go:build !race

package lease

// slowdown is by how much fewer simulations there are.
const slowdown = 1
