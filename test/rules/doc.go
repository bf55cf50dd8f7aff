// Package rules holds the tree to its own house rules by reading it: who may import whom, which engine belongs to which
// folder, where goroutines and clocks may be used, what must be documented, and what must not be in a tracked file.
//
// Each rule is a function from the parsed tree to findings; a finding names file, line and rule. TestTree runs them all
// over the repository, TestRulesBite over small wrong trees, so that a rule that stops finding anything is found out.
//
// A rule has no switch to turn it off in a line of code. Exceptions are listed beside the rule, each with its reason.
package rules
