package program

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/nodeactor/nodeactor/actors/node"
)

const (
	// restartPoll is how often the new generation is looked for.
	restartPoll = 25 * time.Millisecond
	// restartQuiet is how long a restart may take before the wait is explained.
	restartQuiet = 2 * time.Second
)

func restartCommand() *cobra.Command {
	var dir string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:     "restart PATH",
		Short:   "Give an actor a new generation and wait until it runs",
		GroupID: "tree",
		Args:    onePath(false),
		Long: `Stops the actor at PATH and starts it again, whatever state it is in: one that is dead, parked or
backing off is started at once and its failures are forgotten. What its group's strategy restarts
together with it is restarted, too; a restarted group restarts everything in it. It costs no
budget. No container is touched.

It waits until the new generation runs and prints the old and the new one, and how long it took.
The root cannot be restarted: it ends only with the process.`,
		Example: `  nodeactor restart node/core/scheduler
  nodeactor restart node/controllers/deployment/manifests/default:web
  nodeactor restart node/kubelet --timeout 30s`,
		ValidArgsFunction: completePaths(&dir),
	}
	dataDirVar(cmd, &dir)
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Minute, "how long to wait for the new generation")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := connect(dir)
		if err != nil {
			return err
		}
		return restart(cmd.Context(), client, args[0], timeout, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return cmd
}

func restart(ctx context.Context, client *node.LocalClient, path string, timeout time.Duration, out, notes io.Writer) error {
	begin := time.Now()
	old, err := client.RestartActor(ctx, path)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	w := &waiter{client: client, old: old, begin: begin, notes: notes}
	now, err := w.wait(ctx)
	if err != nil {
		return fmt.Errorf("%s was told to restart, but no new generation runs after %s: %w", old.Path, timeout, err)
	}
	fmt.Fprintf(out, "%s: generation %d -> %d, running after %s\n", old.Path, old.Generation, now.Generation, time.Since(begin).Round(time.Millisecond))
	return nil
}

// waiter waits for the next generation of an actor. The socket itself may be restarted
// meanwhile, so an unanswered question is asked again.
type waiter struct {
	client *node.LocalClient
	old    node.Restarting
	begin  time.Time
	notes  io.Writer
	said   string
}

func (w *waiter) wait(ctx context.Context) (node.ActorLine, error) {
	last := fmt.Errorf("generation %d has not stopped", w.old.Generation)
	for {
		list, err := w.client.Actors(ctx, node.ActorQuery{Path: w.old.Path, Depth: 0})
		switch {
		case err != nil && ctx.Err() == nil:
			last = err
		case err == nil && len(list.Actors) > 0:
			a := list.Actors[0]
			if a.Generation > w.old.Generation && a.State == "running" {
				return a, nil
			}
			last = w.progress(a)
		}
		select {
		case <-ctx.Done():
			return node.ActorLine{}, last
		case <-time.After(restartPoll):
		}
	}
}

// progress tells what the actor is doing once the restart takes a while.
func (w *waiter) progress(a node.ActorLine) error {
	state := fmt.Errorf("generation %d is %s", a.Generation, stateText(a))
	if a.LastFault != nil && a.LastFault.At.After(w.begin) {
		state = fmt.Errorf("%w after %s in %s: %s", state, a.LastFault.Kind, a.LastFault.Message, oneLine(a.LastFault.Error))
	}
	if time.Since(w.begin) > restartQuiet && w.said != state.Error() {
		w.said = state.Error()
		fmt.Fprintf(w.notes, "waiting: %s\n", w.said)
	}
	return state
}
