package faultmatrix

import (
	"fmt"
	"testing"

	"github.com/nodeactor/nodeactor/actors/node"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
	"github.com/nodeactor/nodeactor/test/golden"
	"github.com/nodeactor/nodeactor/test/standin"
)

// goldenFile is the table: commit a change of it only when every cell is meant.
const goldenFile = "testdata/matrix.md"

// matrix is the whole of it.
type matrix struct {
	blueprint supervision.Spec
	nodes     []*standin.Node
	// trials are those of each child by fault; spins are those that spin, by row.
	trials map[string]map[string]*trial
	spins  map[string]*trial
}

func newMatrix(t *testing.T) *matrix {
	t.Helper()
	blueprint, err := node.Blueprint(node.Config{DataDir: t.TempDir(), NodeName: "host"}.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	m := &matrix{blueprint: blueprint, nodes: standin.Declared(&blueprint), trials: map[string]map[string]*trial{}, spins: map[string]*trial{}}
	if rows := standin.Unknown(m.nodes); len(rows) > 0 {
		t.Fatalf("say in standin.Of how these children live, and run with -update: %v", rows)
	}
	return m
}

// TestFaultMatrix is every child and every fault.
func TestFaultMatrix(t *testing.T) {
	m := newMatrix(t)
	for _, n := range m.nodes {
		m.trials[n.Path] = map[string]*trial{}
		for _, f := range faults {
			if f.applies != nil && !f.applies(n) {
				continue
			}
			c := m.try(t, n, f)
			m.trials[n.Path][f.name] = c
			for _, wrong := range c.wrong {
				t.Errorf("%s, %s: %s", c.child.Path, f.name, wrong)
			}
		}
	}
	m.holdRepairs(t)
	m.compare(t)
}

func (m *matrix) try(t *testing.T, n *standin.Node, f fault) *trial {
	t.Helper()
	if f.spins {
		return m.spun(t, n, f)
	}
	c := &trial{fault: f, matrix: m, child: n, subject: subjectOf(n)}
	c.run(t)
	return c
}

// subjectOf is the worker in which the fault of a child is brought about: itself, or the first there is below it, as near as possible.
func subjectOf(n *standin.Node) *standin.Node {
	for level := []*standin.Node{n}; len(level) > 0; {
		var below []*standin.Node
		for _, kid := range level {
			if kid.Spec.Kind == core.Worker {
				return kid
			}
			below = append(below, kid.Kids...)
		}
		level = below
	}
	panic("a supervisor without a worker: " + n.Path)
}

func (m *matrix) compare(t *testing.T) {
	t.Helper()
	got := m.table()
	fmt.Printf("%s\n%s\n", got, m.figures())
	golden.Check(t, goldenFile, got)
}
