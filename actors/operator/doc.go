// Package operator is for operators of one's own: a typed specification, a function that brings about what it declares, and everything
// else the same for all.
package operator
