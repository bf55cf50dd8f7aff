//go:build !race

package session_test

// raceDetector tells whether the race detector is on, which makes everything slower.
const raceDetector = false
