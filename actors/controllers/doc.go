// Package controllers is the list of the built-in controllers, each a reconciler on the operator's contract.
//
// All gives them in the order of the tree with their declared reads; Specs gives the supervised subtree of each. What reads what
// is kept in testdata/graph.golden, for a reader and for review.
//
// Every controller lives in a folder of its own, with the decision apart from its execution: decisions are pure functions from
// observed state to actions, executors are thin and use the ordinary API client, so that the API's validation and admission apply
// to them as to anybody. Races with other writers end in a refused write and another pass on the newer state.
package controllers
