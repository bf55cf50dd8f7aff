package supervision_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// scanned is the paths of a scan, at most limit of them.
func scanned(s *supervision.System, after string, limit int) (got []string) {
	s.Scan(after, func(n supervision.Node) bool {
		got = append(got, n.Path)
		return len(got) < limit
	})
	return got
}

// TestScanIsInspectInPieces holds that a scan shows what Inspect shows, in the same order, wherever
// it is cut, though its last member may be gone by then; and that Look shows each of them alone.
func TestScanIsInspectInPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const members = 2000
		s, pool := newSystem(t), sup("pool", core.Pool)
		idle := func() supervision.Handler { return nil }
		tmpl := spec("member", idle)
		pool.Template = &tmpl
		if got := scanned(s, "", 1); got != nil {
			t.Errorf("before the start there is %v", got)
		}
		root := sup("root", core.OneForOne, spec("a", idle), sup("b", core.OneForOne, spec("c", idle), pool, spec("d", idle)), spec("e", idle))
		must(t, s.Start(root))
		for i := range members {
			s.Pool("root/b/pool").Ensure(fmt.Sprintf("m:%d", i*7919%members), idle)
		}
		synctest.Wait()
		var want []string
		s.Inspect().Walk(func(n supervision.Node) bool {
			want = append(want, n.Path)
			one, ok := s.Look(n.Path)
			if !ok || one.Path != n.Path || one.State != n.State || one.Since != n.Since || one.Generation != n.Generation || one.Children != nil {
				t.Errorf("Look shows %+v, Inspect %+v", one, n)
			}
			return true
		})
		if all := scanned(s, "", 10*members); !slices.Equal(all, want) {
			t.Fatalf("a scan shows %d actors, Inspect %d", len(all), len(want))
		}
		var pieces []string
		for after := ""; ; after = pieces[len(pieces)-1] {
			piece := scanned(s, after, 97)
			pieces = append(pieces, piece...)
			if len(piece) < 97 {
				break
			}
		}
		if !slices.Equal(pieces, want) {
			t.Errorf("in pieces a scan shows %d actors, Inspect %d", len(pieces), len(want))
		}
		s.Pool("root/b/pool").Stop("m:1000")
		synctest.Wait()
		if next := scanned(s, "root/b/pool/m:1000", 1); next[0] != "root/b/pool/m:1001" {
			t.Errorf("behind a member that is gone comes %v", next)
		}
		for _, path := range []string{"", "root/x", "root/b/pool/m:1000", "root/b/x/y", "x"} {
			if n, ok := s.Look(path); ok {
				t.Errorf("at %q there is %+v", path, n)
			}
		}
		stopped(t, s)
	})
}
