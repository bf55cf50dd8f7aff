package faultmatrix

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
	"github.com/nodeactor/nodeactor/test/standin"
)

// Windows of a child that spins, in real time, and how long its repair may take on a machine
// that is busy with other things.
const (
	spinHang, spinStop = 100 * time.Millisecond, 50 * time.Millisecond
	spinLimit          = 20 * time.Second
)

// spun is the trial of a child that spins. It takes real time, for a goroutine that spins stops
// virtual time, so the child's windows are shorter than the catalog's, and one child of each row
// stands for all.
func (m *matrix) spun(t *testing.T, n *standin.Node, f fault) *trial {
	t.Helper()
	if m.spins[n.Spec.Row] == nil {
		m.spins[n.Spec.Row] = m.spin(t, n, f)
	}
	return m.spins[n.Spec.Row]
}

// spin has a child spin: it has to be found, abandoned and replaced, while those who do not share
// its fate stay what they are.
func (m *matrix) spin(t *testing.T, n *standin.Node, f fault) *trial {
	t.Helper()
	w := standin.NewWorld()
	root := w.Fill(changed(m.blueprint, m.blueprint.ID, n, func(s *supervision.Spec) {
		s.HangAfter, s.StopTimeout = spinHang, spinStop
		s.Policy[core.Hang].Backoff.Initial = spinStop
	}))
	sys, err := supervision.New(supervision.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := sys.Start(root); err != nil {
		t.Fatal(err)
	}
	defer sys.Stop(context.Background())
	defer w.Free()
	c := &trial{matrix: m, child: n, subject: n, nodes: m.nodes, world: w, sys: sys, fault: f}
	c.eventually(t, func() bool { return c.runs() })
	c.before = c.look()
	w.Arm(n.Path, standin.AtMessage, standin.Spins, 1)
	c.send(standin.Poke{})
	c.eventually(t, func() bool { return sys.Abandoned() == 1 && c.runs() && c.moved(n) > 0 })
	c.repair = time.Since(c.lastFault().At)
	want := c.declared(c)
	for _, other := range c.nodes {
		c.compareOne(other, want, 1)
	}
	return c
}

// runs tells whether every child of the tree runs; it looks.
func (c *trial) runs() bool {
	c.after = c.look()
	for _, n := range c.nodes {
		if c.after[n.Path].State != core.Running {
			return false
		}
	}
	return true
}

func (c *trial) eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(spinLimit); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", c.child.Path, spinLimit)
		}
	}
}
