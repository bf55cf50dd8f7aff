package program

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/nodeactor/nodeactor/actors/node"
)

// reconnectAfter is the wait before a follower whose stream ended looks for the node again.
const reconnectAfter = 200 * time.Millisecond

// faultFlags are the settings of `faults`.
type faultFlags struct {
	dir, output, stack string
	follow             bool
	tail               int
}

func faultsCommand() *cobra.Command {
	var f faultFlags
	cmd := &cobra.Command{
		Use:     "faults [PATH]",
		Short:   "List what went wrong in which actor, oldest first; -f goes on",
		GroupID: "tree",
		Args:    onePath(true),
		Long: `Lists the faults that the running node keeps (the last 1000 since it started), of all actors or
of those at and below PATH: when, the kind (Panic, Hang, ErrorReturn, BindFailure), the hash of
the stack, path#generation, the message that was being handled, and the error.

Faults with the same hash have the same cause. --stack HASH prints its stack, once.`,
		Example: `  nodeactor faults
  nodeactor faults node/controllers -f
  nodeactor faults --tail 20 -o json | jq -r .[].path
  nodeactor faults --stack 1f0c9a4e`,
		ValidArgsFunction: completePaths(&f.dir),
	}
	dataDirVar(cmd, &f.dir)
	flags := cmd.Flags()
	flags.BoolVarP(&f.follow, "follow", "f", false, "go on with what happens from now on, until interrupted")
	flags.StringVarP(&f.output, "output", "o", "table", "table or json; followed, json is one object in a line")
	flags.StringVar(&f.stack, "stack", "", "print the stack with this `hash`")
	flags.IntVar(&f.tail, "tail", -1, "begin with the last `n` kept faults; all by default")
	words(cmd, "output", "table", "json")
	_ = cmd.RegisterFlagCompletionFunc("stack", completeHashes(&f.dir))
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) }
	return cmd
}

func (f *faultFlags) run(cmd *cobra.Command, args []string) error {
	if err := oneOf("--output", f.output, "table", "json"); err != nil {
		return err
	}
	client, err := connect(f.dir)
	if err != nil {
		return err
	}
	path := ""
	if len(args) == 1 {
		path = args[0]
	}
	switch {
	case f.stack != "":
		text, err := client.FaultStack(cmd.Context(), f.stack)
		if err == nil {
			_, err = io.WriteString(cmd.OutOrStdout(), text)
		}
		return err
	case f.follow:
		return f.goOn(cmd, client, path)
	}
	return f.list(cmd, client, path)
}

// list prints what is kept.
func (f *faultFlags) list(cmd *cobra.Command, client *node.LocalClient, path string) error {
	found, err := kept(cmd.Context(), client, path)
	if err != nil {
		return err
	}
	found = f.last(found)
	if f.output == "json" {
		return encode(cmd, "json", found)
	}
	if len(found) == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "no fault is kept: nothing went wrong since the node started")
		return nil
	}
	width := pathWidth
	for _, l := range found {
		width = max(width, len(source(l)))
	}
	printFaultHead(cmd.OutOrStdout(), width)
	for _, l := range found {
		printFault(cmd.OutOrStdout(), l, width)
	}
	return nil
}

// kept reads the faults that are kept.
func kept(ctx context.Context, client *node.LocalClient, path string) ([]node.FaultLine, error) {
	found := []node.FaultLine{}
	err := client.Faults(ctx, path, time.Time{}, false, func(l node.FaultLine) error {
		found = append(found, l)
		return nil
	})
	return found, err
}

func (f *faultFlags) last(found []node.FaultLine) []node.FaultLine {
	if f.tail >= 0 && len(found) > f.tail {
		return found[len(found)-f.tail:]
	}
	return found
}

// goOn prints what is kept and what follows; it looks for the node again when the socket was
// restarted, and ends when the node does.
func (f *faultFlags) goOn(cmd *cobra.Command, client *node.LocalClient, path string) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	after, err := f.begin(ctx, client, path)
	if err != nil {
		return err
	}
	if f.output == "table" {
		printFaultHead(cmd.OutOrStdout(), pathWidth)
	}
	for {
		err := client.Faults(ctx, path, after, true, func(l node.FaultLine) error {
			after = l.At
			return f.print(cmd.OutOrStdout(), l)
		})
		if ctx.Err() != nil {
			return nil
		}
		if node.Owner(node.Config{DataDir: f.dir}.WithDefaults().DataDir) == 0 {
			return fmt.Errorf("the node has stopped")
		}
		_ = err // whatever cut the stream, the node still runs and its socket comes back
		time.Sleep(reconnectAfter)
	}
}

// begin is the moment from which faults are printed; it also proves that there is something
// to follow.
func (f *faultFlags) begin(ctx context.Context, client *node.LocalClient, path string) (time.Time, error) {
	found, err := kept(ctx, client, path)
	if shown := f.last(found); err == nil && len(found) > len(shown) {
		return found[len(found)-len(shown)-1].At, nil
	}
	return time.Time{}, err
}

func (f *faultFlags) print(out io.Writer, l node.FaultLine) error {
	if f.output == "json" {
		return json.NewEncoder(out).Encode(l)
	}
	if l.Lost > 0 {
		fmt.Fprintf(out, "(%d faults came too fast to be shown)\n", l.Lost)
	}
	printFault(out, l, pathWidth)
	return nil
}

const (
	faultFormat = "%-23s  %-11s  %-8s  %-*s  %-24s  %s\n"
	// pathWidth is the least width of the column of paths, and the one where it is not known what will follow.
	pathWidth = 44
)

func printFaultHead(out io.Writer, width int) {
	fmt.Fprintf(out, faultFormat, "TIME", "KIND", "HASH", width, "PATH#GENERATION", "MESSAGE", "ERROR")
}

func printFault(out io.Writer, l node.FaultLine, width int) {
	at := l.At.Local().Format("2006-01-02 15:04:05.000")
	fmt.Fprintf(out, faultFormat, at, l.Kind, l.Hash, width, source(l), oneLine(l.Message), oneLine(l.Error))
}

// source is the path and the generation a fault happened in.
func source(l node.FaultLine) string { return fmt.Sprintf("%s#%d", l.Path, l.Generation) }
