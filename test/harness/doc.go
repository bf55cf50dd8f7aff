// Package harness tests actors: under a scheduler that a seed decides, in bubbles of virtual
// time, and for real. Faults are injected, and whatever goes wrong undeclared fails the test.
// It needs nothing but the standard library and package supervision.
//
// # Tutorial
//
// An operator watches the world and acts on it until it is as it should be. This one makes
// machines, one after the other; making one takes a while, so it is the job of an actor:
//
//	// cloud is the world that the scaler acts on: what is wanted, and what there is.
//	type cloud struct{ want, have int }
//
//	// scaler makes one machine after the other until there are as many as are wanted.
//	type scaler struct {
//		world *cloud
//		busy  bool
//	}
//
//	func (s *scaler) Receive(ctx supervision.Context, msg any) error {
//		if done, ok := msg.(supervision.JobDone); ok {
//			s.busy = false
//			if done.Err != nil {
//				ctx.After(time.Second, "again")
//				return nil
//			}
//		}
//		if s.busy || s.world.have >= s.world.want {
//			return nil
//		}
//		s.busy = true
//		ctx.Go(supervision.Job{Name: "make", Deadline: time.Minute, Run: func(c context.Context, _ func()) (any, error) {
//			err := ctx.Clock().Sleep(c, 10*time.Second)
//			if err == nil {
//				s.world.have++
//			}
//			return nil, err
//		}})
//		return nil
//	}
//
// Its test makes a tree with the scaler in it, changes the world, lets time pass, looks, and
// then does the worst: the actor panics while the second machine is being made, and the job
// after that fails. Sim runs all of this for 200 seeds, each in another order of whatever may
// happen in more than one, and each twice to be sure that nothing but the seed decides. That
// takes some 50 ms:
//
//	harness.Sim(t, func(k *harness.Kit) {
//		world := &cloud{}
//		k.Tree(harness.Group("root", harness.OneForOne,
//			harness.Worker("scaler", func() supervision.Handler { return &scaler{world: world} })))
//
//		world.want = 3
//		k.Send("root/scaler", "the world has changed")
//		k.Advance(15 * time.Second)
//		if world.have != 1 {
//			k.Fatalf("%d machines after 15 s", world.have)
//		}
//
//		k.Expect("root/scaler", supervision.Panic)
//		k.Inject("root/scaler", 1, supervision.Panic)
//		k.InjectJob("root/scaler", "make", 1, supervision.ErrorReturn)
//		k.Steady(5 * time.Minute)
//		if world.have != 3 {
//			k.Fatalf("%d machines in the end", world.have)
//		}
//	}, harness.Seeds(200))
//
// Try what happens without the line that begins with k.Expect: the panic was not declared, so
// the test fails. It prints every event of that run, with its virtual time, and the command
// that runs the same seed again:
//
//	HARNESS_SEED=1 go test -count=1 -run '^TestScaler$' example.com/scaler
//
// Run again that way, the trace also shows what is in the messages.
//
// # Levels
//
//   - Level 0, Play: transcripts of a pure core, text files of events and answers.
//   - Level 1, Sim and New: one goroutine at a time, in virtual time; what can be run next is
//     chosen by the seed. Thousands of runs a second, each of which can be repeated exactly.
//   - Level 2, Bubble: real goroutines in a bubble of testing/synctest, for code that blocks on
//     channels or goes through net/http. Time is virtual, the order is not repeatable.
//   - Level 3, Real: the machine's clock, for what virtual time cannot show: processes, sockets,
//     handlers that spin, the race detector.
//
// A test is a func(*Kit) and can be run at any of the levels 1 to 3.
//
// # What is judged
//
// When the test's function has returned, the kit releases what hangs, stops the trees newest
// first, and fails the test for each of these that was not declared: a fault (Expect, Allow), a
// message that nobody took (ExpectDeadLetters), a generation that would not stop
// (ExpectAbandoned), a tree that ended by itself (ExpectExit); and for each that was declared
// and did not come. An injected fault that never happened, a client that does not end with its
// context and a goroutine that is left fail it as well. Dead letters of the kit's own stop do
// not count.
//
// # Rules for code in a seeded run
//
// Everything runs on one goroutine at a time. A step, which is one message of one actor, may
// wait for the clock of its Context, for a Net, and by Kit.Go for other code under the same
// rule; while it does, others go on. It must not wait for anything else: a step that blocks on
// a channel, lock or socket is found out after Patience and named. So:
//
//   - Jobs with a Deadline or BeatWithin run as a step, a moment later than they were started.
//     Endless ones, which would wait for something from outside, are only run when their
//     context has ended, unless RunEndless says that they keep to the rule. Kit.Jobs puts
//     others in their place.
//   - Nothing may decide but the seed: take random numbers from Kit.Rand or Config.Rand, the
//     time from the Clock, and sort what comes out of a map. A run that does not keep to this
//     fails, because its two traces differ.
//   - Goroutines of one's own, net/http and context.WithTimeout belong to level 2.
//
// # Environment
//
//	HARNESS_SEED=N     run that seed alone, and show what is in messages
//	HARNESS_SEEDS=N    run so many seeds in place of what the test says
//	HARNESS_FIRST=N    begin with that one, so that several processes can share the seeds
//	HARNESS_UPDATE=1   write the answers into the transcripts
//
// DESIGN.md tells how it works and why.
package harness
