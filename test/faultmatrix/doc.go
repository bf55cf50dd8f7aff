// Package faultmatrix brings every fault about in every child of the product, and holds what
// happens to what the catalog declares.
//
// Children are found by walking the product's own tree, in which stand-ins (test/standin) live
// as the real ones do. The oracle reads the policy cells, strategies and budgets and says what
// has to happen; it shares no code with the kernel that makes it happen. The result is one
// table, testdata/matrix.md, which -update rewrites: a new child or a new fault changes it, and
// so does every outcome that is not what it was.
package faultmatrix
