package supervision_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// TestInspectShowsTheQueue holds what is seen of a child at work.
func TestInspectShowsTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, release := newSystem(t), make(chan struct{})
		must(t, s.Start(sup("root", core.OneForOne, talker(&journal{}, "a"))))
		began := time.Now()
		for range 3 {
			s.Send(s.Ref("root/a"), step(func(supervision.Context) error { return nil }))
		}
		s.Send(s.Ref("root/a"), step(func(ctx supervision.Context) error {
			for _, name := range []string{"one", "two"} {
				ctx.Go(supervision.Job{Name: name, Endless: true, Run: func(c context.Context, _ func()) (any, error) { <-c.Done(); return nil, nil }})
			}
			<-release
			return nil
		}))
		synctest.Wait()
		s.Send(s.Ref("root/a"), "waits")
		time.Sleep(3500 * time.Millisecond)
		s.Send(s.Ref("root/a"), "waits, too")
		n := nodeAt(s, "root/a")
		if n.Mailbox != 2 || n.OldestFor < 2*time.Second || n.OldestFor > 4*time.Second {
			t.Errorf("%d messages wait, the oldest for %v", n.Mailbox, n.OldestFor)
		}
		if n.Handled != 4 || !slices.Equal(n.JobNames, []string{"one", "two"}) || n.Jobs != 2 {
			t.Errorf("%d messages handled, jobs %q", n.Handled, n.JobNames)
		}
		if n.State != core.Running || !n.Since.Equal(began) || n.BusyFor == 0 {
			t.Errorf("%v since %v, busy for %v", n.State, n.Since, n.BusyFor)
		}
		close(release)
		synctest.Wait()
		if n := nodeAt(s, "root/a"); n.OldestFor != 0 || n.Mailbox != 0 || n.Handled != 7 {
			t.Errorf("at rest: %+v", n)
		}
		stopped(t, s)
	})
}

// TestInspectShowsOwnMessagesToo holds that what a child has for itself counts as waiting.
func TestInspectShowsOwnMessagesToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, release := newSystem(t), make(chan struct{})
		must(t, s.Start(sup("root", core.OneForOne, talker(&journal{}, "a"))))
		s.Send(s.Ref("root/a"), step(func(ctx supervision.Context) error {
			ctx.After(time.Second, "later")
			<-release
			return nil
		}))
		time.Sleep(5500 * time.Millisecond)
		if n := nodeAt(s, "root/a"); n.Mailbox != 1 || n.OldestFor < 3*time.Second || n.OldestFor > 5*time.Second {
			t.Errorf("%d messages wait, the oldest for %v", n.Mailbox, n.OldestFor)
		}
		close(release)
		stopped(t, s)
	})
}

// TestInspectKeepsWhatIsDown holds that children that are down stay visible with cause, time
// and stack hash, in groups and in pools.
func TestInspectKeepsWhatIsDown(t *testing.T) {
	for _, do := range []core.ReactionKind{core.DoStop, core.DoPark} {
		synctest.Test(t, func(t *testing.T) {
			s := newSystem(t)
			child := talker(&journal{}, "a")
			child.Policy[core.Panic].Do = do
			p := sup("pool", core.Pool)
			tmpl := child
			tmpl.ID = "member"
			p.Template = &tmpl
			must(t, s.Start(sup("root", core.OneForOne, child, p)))
			s.Send(s.Pool("root/pool").Ensure("m", child.Start), step(boom))
			s.Send(s.Ref("root/a"), step(boom))
			synctest.Wait()
			failed := time.Now()
			pass(3 * time.Second)
			for _, path := range []string{"root/a", "root/pool/m"} {
				n := nodeAt(s, path)
				want := map[core.ReactionKind]core.State{core.DoStop: core.Dead, core.DoPark: core.Parked}[do]
				if n.State != want || !n.Since.Equal(failed) || n.LastFault == nil || n.LastFault.Kind != core.Panic {
					t.Errorf("%s is %v since %v with %v", path, n.State, n.Since, n.LastFault)
				}
				if len(n.StackHash) != 8 || n.StackHash != n.LastFault.StackHash() {
					t.Errorf("%s has stack hash %q", path, n.StackHash)
				}
				if parked := do == core.DoPark; parked != n.NextTry.Equal(failed.Add(5*time.Second)) || !parked && !n.NextTry.IsZero() {
					t.Errorf("%s is tried again at %v", path, n.NextTry)
				}
			}
			if a, m := nodeAt(s, "root/a").StackHash, nodeAt(s, "root/pool/m").StackHash; a != m {
				t.Errorf("one cause has two stack hashes, %s and %s", a, m)
			}
			if unasked := s.UnaskedStops(); (do == core.DoStop) != (unasked == 2) {
				t.Errorf("%d stops nobody asked for", unasked)
			}
			stopped(t, s)
		})
	}
}

// TestInspectListsZombies holds that what was left behind is shown until it ends, also in the
// place of a member that its pool has forgotten.
func TestInspectListsZombies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, release := newSystem(t), make(chan struct{})
		p := sup("pool", core.Pool)
		tmpl := talker(&journal{}, "member")
		p.Template = &tmpl
		must(t, s.Start(sup("root", core.OneForOne, talker(&journal{}, "a"), p)))
		hang := step(func(supervision.Context) error { <-release; return nil })
		s.Send(s.Ref("root/a"), hang)
		s.Send(s.Pool("root/pool").Ensure("m", tmpl.Start), hang)
		s.Send(s.Pool("root/pool").Ensure("gone", tmpl.Start), hang)
		synctest.Wait()
		s.Pool("root/pool").Stop("gone")
		pass(30 * time.Second)
		for path, state := range map[string]core.State{"root/a": core.Running, "root/pool/m": core.Running, "root/pool/gone": core.Idle} {
			n := nodeAt(s, path)
			if n.State != state || n.Abandoned != 1 || len(n.Zombies) != 1 {
				t.Fatalf("%s is %+v", path, n)
			}
			z := n.Zombies[0]
			if z.Generation == 0 || z.Since.IsZero() || z.StackHash == "" || z.Stack == "" || (z.Fault == nil) != (state == core.Idle) {
				t.Errorf("the zombie of %s is %+v", path, z)
			}
		}
		close(release)
		synctest.Wait()
		s.Inspect().Walk(func(n supervision.Node) bool {
			if n.Abandoned != 0 || n.Path == "root/pool/gone" {
				t.Errorf("after the end of the zombies: %+v", n)
			}
			return true
		})
		stopped(t, s)
	})
}

// TestInspectTheRoot follows the state of the tree itself.
func TestInspectTheRoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		slow := dawdler(&journal{}, "slow", time.Second, time.Second)
		done := make(chan error, 1)
		go func() { done <- s.Start(sup("root", core.OneForOne, slow)) }()
		synctest.Wait()
		states := []supervision.State{s.Inspect().Root.State}
		must(t, <-done)
		states = append(states, s.Inspect().Root.State)
		go s.Stop(context.Background())
		synctest.Wait()
		states = append(states, s.Inspect().Root.State)
		pass(time.Minute)
		states = append(states, s.Inspect().Root.State)
		if want := []supervision.State{core.Starting, core.Running, core.Stopping, core.Idle}; !slices.Equal(states, want) {
			t.Errorf("the root was %v, want %v", states, want)
		}
		stopped(t, s)
	})
}
