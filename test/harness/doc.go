// Package harness tests actors: under a scheduler that a seed decides, in bubbles of virtual
// time, and for real, with faults that are injected and must be declared.
package harness
