package harness

import (
	"fmt"
	"path"
	"slices"
	"sync"

	"github.com/nodeactor/nodeactor/supervision"
)

// anyNumber is the most of what is merely allowed.
const anyNumber = 1 << 30

// declared is what a test says will go wrong.
type declared struct {
	// pattern is a path as for path.Match.
	pattern string
	kind    supervision.FaultKind
	least   int
	most    int
	seen    int
}

// expectations are the faults that were declared, and those that came.
type expectations struct {
	mu       sync.Mutex
	declared []*declared
	faults   []supervision.Fault
	// The least and most of the rest, in numbers.
	dead, abandoned, exits bound
}

type bound struct{ least, most int }

func (b bound) holds(n int) bool { return n >= b.least && n <= b.most }

// Expect declares one fault of a kind of the child at path: it must come, once. A path may
// contain the wildcards of path.Match.
func (k *Kit) Expect(path string, kind supervision.FaultKind) { k.ExpectTimes(path, kind, 1) }

// ExpectTimes declares so many faults.
func (k *Kit) ExpectTimes(path string, kind supervision.FaultKind, times int) {
	k.expected.declare(path, kind, times, times)
}

// Allow permits any number of faults of these kinds, or of all kinds when none is named.
func (k *Kit) Allow(path string, kinds ...supervision.FaultKind) {
	if len(kinds) == 0 {
		kinds = []supervision.FaultKind{supervision.Panic, supervision.Hang, supervision.ErrorReturn, supervision.BindFailure}
	}
	for _, kind := range kinds {
		k.expected.declare(path, kind, 0, anyNumber)
	}
}

// ExpectDeadLetters declares that so many messages will be taken by nobody.
func (k *Kit) ExpectDeadLetters(n int) { k.expected.bound(&k.expected.dead, bound{n, n}) }

// AllowDeadLetters permits any number of messages that nobody takes.
func (k *Kit) AllowDeadLetters() { k.expected.bound(&k.expected.dead, bound{0, anyNumber}) }

// ExpectAbandoned declares that so many generations will not stop in time.
func (k *Kit) ExpectAbandoned(n int) { k.expected.bound(&k.expected.abandoned, bound{n, n}) }

// AllowAbandoned permits any number of generations that do not stop in time.
func (k *Kit) AllowAbandoned() { k.expected.bound(&k.expected.abandoned, bound{0, anyNumber}) }

// ExpectExit declares that a tree will end by itself, because a fault escalates past its root or
// because it has finished.
func (k *Kit) ExpectExit() { k.expected.bound(&k.expected.exits, bound{1, 1}) }

// AllowExit permits that.
func (k *Kit) AllowExit() { k.expected.bound(&k.expected.exits, bound{0, anyNumber}) }

func (e *expectations) bound(b *bound, more bound) {
	e.mu.Lock()
	defer e.mu.Unlock()
	b.least += more.least
	b.most = min(b.most+more.most, anyNumber)
}

func (e *expectations) declare(path string, kind supervision.FaultKind, least, most int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, d := range e.declared {
		if d.pattern == path && d.kind == kind {
			d.least, d.most = d.least+least, min(d.most+most, anyNumber)
			return
		}
	}
	e.declared = append(e.declared, &declared{pattern: path, kind: kind, least: least, most: most})
}

// came notes a fault.
func (e *expectations) came(f supervision.Fault) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults = append(e.faults, f)
}

// Faults are those that came so far, oldest first.
func (k *Kit) Faults() []supervision.Fault {
	k.expected.mu.Lock()
	defer k.expected.mu.Unlock()
	return slices.Clone(k.expected.faults)
}

// judge compares what came with what was declared.
func (e *expectations) judge() (wrong []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, f := range e.faults {
		if d := e.declaration(f); d != nil {
			d.seen++
			continue
		}
		wrong = append(wrong, fmt.Sprintf("undeclared fault: %v%s", f, stackOf(f)))
	}
	for _, d := range e.declared {
		if d.seen < d.least {
			wrong = append(wrong, fmt.Sprintf("declared and missing: %s of %s came %d times, not %d", d.kind, d.pattern, d.seen, d.least))
		}
	}
	return wrong
}

// declaration finds who has room for a fault.
func (e *expectations) declaration(f supervision.Fault) *declared {
	for _, d := range e.declared {
		if ok, _ := path.Match(d.pattern, f.Path); ok && d.kind == f.Kind && d.seen < d.most {
			return d
		}
	}
	return nil
}

func stackOf(f supervision.Fault) string {
	if len(f.Stack) == 0 {
		return ""
	}
	return "\n" + string(f.Stack)
}

// judgeCount compares one number.
func judgeCount(what string, b bound, n int) []string {
	switch {
	case b.holds(n):
		return nil
	case n > b.most:
		return []string{fmt.Sprintf("undeclared %s: %d, declared are %d", what, n, b.most)}
	}
	return []string{fmt.Sprintf("declared and missing %s: %d of %d", what, n, b.least)}
}
