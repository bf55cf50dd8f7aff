package harness_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/test/harness"
)

// cloud is the world that the scaler acts on: what is wanted, and what there is.
type cloud struct{ want, have int }

// scaler makes one machine after the other until there are as many as are wanted.
type scaler struct {
	world *cloud
	busy  bool
}

func (s *scaler) Receive(ctx supervision.Context, msg any) error {
	if done, ok := msg.(supervision.JobDone); ok {
		s.busy = false
		if done.Err != nil {
			ctx.After(time.Second, "again")
			return nil
		}
	}
	if s.busy || s.world.have >= s.world.want {
		return nil
	}
	s.busy = true
	ctx.Go(supervision.Job{Name: "make", Deadline: time.Minute, Run: func(c context.Context, _ func()) (any, error) {
		err := ctx.Clock().Sleep(c, 10*time.Second)
		if err == nil {
			s.world.have++
		}
		return nil, err
	}})
	return nil
}

// ExampleSim is the tutorial of the package.
func ExampleSim() {
	t := harness.Printer("ExampleSim") // in a test: the *testing.T
	harness.Sim(t, func(k *harness.Kit) {
		world := &cloud{}
		k.Tree(harness.Group("root", harness.OneForOne,
			harness.Worker("scaler", func() supervision.Handler { return &scaler{world: world} })))

		world.want = 3
		k.Send("root/scaler", "the world has changed")
		k.Advance(15 * time.Second)
		if world.have != 1 {
			k.Fatalf("%d machines after 15 s", world.have)
		}

		k.Expect("root/scaler", supervision.Panic)
		k.Inject("root/scaler", 1, supervision.Panic)
		k.InjectJob("root/scaler", "make", 1, supervision.ErrorReturn)
		k.Steady(5 * time.Minute)
		if world.have != 3 {
			k.Fatalf("%d machines in the end", world.have)
		}
	}, harness.Seeds(200))
	fmt.Println("ok")
	// Output: ok
}

// TestTutorial holds that the tutorial in the package's documentation is the code above, and
// short.
func TestTutorial(t *testing.T) {
	doc, code := read(t, "doc.go"), read(t, "example_test.go")
	body := code[strings.Index(code, "\tharness.Sim(t, "):strings.Index(code, "\tfmt.Println(\"ok\")")]
	if n := strings.Count(body, "\n"); n >= 40 {
		t.Errorf("the tutorial has %d lines", n)
	}
	scaler := code[strings.Index(code, "// cloud is"):strings.Index(code, "// ExampleSim is")]
	for _, part := range []string{scaler, strings.ReplaceAll("\n"+body, "\n\t", "\n")} {
		for line := range strings.SplitSeq(strings.TrimRight(part, "\n"), "\n") {
			if line != "" && !strings.Contains(doc, "\n//\t"+line+"\n") {
				t.Errorf("the tutorial in doc.go lacks %q", line)
			}
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
