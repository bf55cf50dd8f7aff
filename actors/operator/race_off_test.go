//go:build !race

package operator_test

// raced is set where the race detector makes everything some ten times slower.
const raced = false
