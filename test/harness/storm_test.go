package harness_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
	"github.com/nodeactor/nodeactor/test/harness"
)

// letter is a message that can be told from all others. It is passed on hops times.
type letter struct{ id, hops int }

// gossip passes letters on to others, sometimes through a job.
type gossip struct {
	k      *harness.Kit
	others []string
	nextID *int
}

func (g *gossip) Receive(ctx supervision.Context, msg any) error {
	switch m := msg.(type) {
	case supervision.Stopping:
		if g.k.Buggify("slow stop") {
			_ = ctx.Clock().Sleep(context.Background(), time.Duration(g.k.Rand().IntN(7))*time.Second)
		}
	case letter:
		return g.letter(ctx, m)
	case supervision.JobDone:
		if m.Err == nil {
			g.pass(ctx, m.Value.(int))
		}
	}
	return nil
}

func (g *gossip) letter(ctx supervision.Context, m letter) error {
	switch {
	case g.k.Buggify("error"):
		return errors.New("a bad day")
	case m.hops > 0 && g.k.Buggify("job"):
		ctx.Go(supervision.Job{Name: "think", Deadline: time.Second, Run: func(c context.Context, _ func()) (any, error) {
			return m.hops - 1, ctx.Clock().Sleep(c, time.Duration(g.k.Rand().IntN(2000))*time.Millisecond)
		}})
	case m.hops > 0:
		g.pass(ctx, m.hops-1)
	}
	return nil
}

// pass sends one letter or two to others; the budget of hops bounds them all.
func (g *gossip) pass(ctx supervision.Context, hops int) {
	for range 1 + g.k.Rand().IntN(2) {
		*g.nextID++
		ctx.Send(ctx.System().Ref(g.others[g.k.Rand().IntN(len(g.others))]), letter{*g.nextID, hops})
	}
}

// storm is a tree of gossips with every strategy and overflow policy, to whom letters are sent
// while faults of all kinds happen.
func storm(k *harness.Kit) (hangs []*harness.Injection) {
	var paths []string
	for _, g := range []string{"one", "all", "rest"} {
		for c := range 3 {
			paths = append(paths, fmt.Sprintf("root/%s/%d", g, c))
		}
	}
	paths = append(paths, "root/pool/a", "root/pool/b", "root/nobody")
	nextID := 0
	start := func() supervision.Handler { return &gossip{k, paths, &nextID} }
	s := k.Tree(stormTree(start))
	for _, id := range []string{"a", "b"} {
		s.Pool("root/pool").Ensure(id, start)
	}
	hangs = stormFaults(k, paths)
	for range 20 {
		nextID++
		k.Send(paths[k.Rand().IntN(len(paths))], letter{nextID, 3})
		if k.Rand().IntN(4) == 0 {
			k.Advance(time.Duration(k.Rand().IntN(3000)) * time.Millisecond)
		}
	}
	if k.Rand().IntN(2) == 0 {
		k.Advance(time.Minute)
	}
	return hangs
}

func stormTree(start func() supervision.Handler) supervision.Spec {
	group := func(id string, strategy core.Strategy) supervision.Spec {
		var children []supervision.Spec
		for c, overflow := range []core.Overflow{core.RejectNewest, core.DropOldest, core.FaultOnOverflow} {
			w := harness.Worker(fmt.Sprint(c), start)
			w.Mailbox = core.Mailbox{Limit: 2, Overflow: overflow}
			w.HangAfter, w.StopTimeout = 2*time.Second, 3*time.Second
			children = append(children, w)
		}
		return harness.Group(id, strategy, children...)
	}
	return harness.Group("root", harness.OneForOne, group("one", harness.OneForOne), group("all", harness.OneForAll),
		group("rest", harness.RestForOne), harness.Pool("pool", harness.Worker("member", nil)))
}

func stormFaults(k *harness.Kit, paths []string) (all []*harness.Injection) {
	k.Allow("root")
	k.Allow("root/*")
	k.Allow("root/*/*")
	k.AllowDeadLetters()
	k.AllowAbandoned()
	k.AllowExit()
	for range 4 {
		path, n := paths[k.Rand().IntN(len(paths))], k.Rand().IntN(6)-1
		in := k.Inject(path, n, supervision.FaultKind(k.Rand().IntN(int(core.NumFaultKinds)))).Optional()
		if k.Rand().IntN(2) == 0 {
			in.Stubborn()
		}
		all = append(all, in)
	}
	k.InjectGoexit(paths[0], 2).Optional()
	return all
}
