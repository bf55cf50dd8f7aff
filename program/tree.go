package program

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nodeactor/nodeactor/actors/node"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// oneShotCPU is how long CPU shares are measured for a list that is printed once.
const oneShotCPU = 500 * time.Millisecond

// treeFlags are the settings of `tree`.
type treeFlags struct {
	dir, output, sort  string
	once, policies     bool
	all                bool
	depth              int
	interval, measured time.Duration
}

func treeCommand() *cobra.Command {
	var f treeFlags
	cmd := &cobra.Command{
		Use:     "tree [PATH]",
		Short:   "Show every actor of this host's node: state, restarts, mailbox, last fault",
		GroupID: "tree",
		Args:    onePath(true),
		Long: `Shows the supervision tree of the node that runs on this host, or the part of it at and
below PATH. On a terminal it is live, like top; otherwise, or with --once or -o, it is
printed once. It asks the node's local socket, so it works as root, and when the API does not.

The columns:

  PATH        the name of the actor, for faults, restart and fault policies
  ROW         its row in the catalog; of a pool, with the number of its members
  STATE       starting, running, stopping, backing-off (waits for its next start), parked (has
              used up its budget and is tried now and then), dead (stays down by policy), done.
              "hung" is added while it makes no progress, "abandoned" when an older generation
              would not stop and still runs
  GEN         its generation: it grows with each start; the members of a pool share one count
  RESTARTS    how often it was started again since its group was
  MAILBOX     messages that wait; OLDEST is how long the oldest has
  LAST FAULT  kind, age and hash of its latest fault; nodeactor faults --stack HASH shows where
  CPU         its share of one core
  LEASE       the lease it holds; "-" on a node that is alone
  NEXT TRY    when one that is parked or backing off starts again

A pool (one actor for each manifest or pod) is one line, which speaks for its members; ask for
the pool itself, or give --all or --depth, to see them.

Live, these keys work: t c m o r f sort by tree, CPU, mailbox, oldest message, restarts, last
fault; a shows the members of pools; arrows scroll; space holds the picture; q ends.

What is done about each fault is shown by --policies; see also "nodeactor run --help".`,
		Example: `  nodeactor tree                                          # live, like top
  nodeactor tree node/controllers --once
  nodeactor tree node/kubelet/pods                        # one line for each pod
  nodeactor tree --all --sort oldest --once | head        # who is behind?
  nodeactor tree -o json | jq '.actors[] | select(.state != "running")'
  nodeactor tree --policies node/store`,
		ValidArgsFunction: completePaths(&f.dir),
	}
	flags := cmd.Flags()
	dataDirVar(cmd, &f.dir)
	flags.BoolVar(&f.once, "once", false, "print once, even on a terminal")
	flags.StringVarP(&f.output, "output", "o", "table", "table, wide, json or yaml")
	flags.StringVar(&f.sort, "sort", "tree", "tree, cpu, mailbox, oldest, restarts or fault")
	flags.BoolVarP(&f.all, "all", "a", false, "list the members of every pool")
	flags.IntVar(&f.depth, "depth", -1, "list only so many `levels` below PATH, members of pools included")
	flags.DurationVar(&f.interval, "interval", 2*time.Second, "`time` between two pictures when live")
	flags.DurationVar(&f.measured, "cpu", oneShotCPU, "`time` to measure CPU shares for when printed once; 0 leaves them out")
	flags.BoolVar(&f.policies, "policies", false, "print what is done about each kind of fault, and what is overridden from which file")
	words(cmd, "output", outputs...)
	words(cmd, "sort", sortKeys...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) }
	return cmd
}

var (
	outputs  = []string{"table", "wide", "json", "yaml"}
	sortKeys = []string{"tree", "cpu", "mailbox", "oldest", "restarts", "fault"}
)

func (f *treeFlags) run(cmd *cobra.Command, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
	client, err := connect(f.dir)
	if err != nil {
		return err
	}
	q := node.ActorQuery{All: f.all, Depth: f.depth, CPU: f.measured}
	if len(args) == 1 {
		q.Path = args[0]
	}
	switch {
	case f.policies:
		return f.printPolicies(cmd, client, q.Path)
	case f.live(cmd):
		return watchTree(cmd.Context(), client, q, f.sort, f.interval)
	}
	return f.printOnce(cmd, client, q)
}

func (f *treeFlags) check() error {
	if err := oneOf("--output", f.output, outputs...); err != nil {
		return err
	}
	if f.interval < 100*time.Millisecond || f.interval > time.Minute {
		return fmt.Errorf("--interval %s is not between 100ms and 1m", f.interval)
	}
	return oneOf("--sort", f.sort, sortKeys...)
}

// live tells whether the picture is to be kept up to date: somebody looks, and asked for
// nothing else.
func (f *treeFlags) live(cmd *cobra.Command) bool {
	out, ok := cmd.OutOrStdout().(*os.File)
	return ok && !f.once && !cmd.Flags().Changed("output") && isTerminal(out)
}

func (f *treeFlags) printOnce(cmd *cobra.Command, client *node.LocalClient, q node.ActorQuery) error {
	list, err := client.Actors(cmd.Context(), q)
	if err != nil {
		return err
	}
	sortActors(list.Actors, f.sort)
	if f.output == "json" || f.output == "yaml" {
		return encode(cmd, f.output, list)
	}
	if list.Note != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), "nodeactor:", list.Note)
	}
	_, err = fmt.Fprint(cmd.OutOrStdout(), strings.Join(table(list, f.output == "wide"), "\n")+"\n")
	return err
}

func (f *treeFlags) printPolicies(cmd *cobra.Command, client *node.LocalClient, path string) error {
	all, err := client.Policies(cmd.Context())
	if err != nil {
		return err
	}
	var chosen []catalog.Effective
	for _, e := range all {
		if path == "" || e.Path == path || strings.HasPrefix(e.Path, path+"/") {
			chosen = append(chosen, e)
		}
	}
	switch {
	case len(chosen) == 0:
		return noPolicy(cmd.Context(), client, path, all)
	case f.output == "json" || f.output == "yaml":
		return encode(cmd, f.output, chosen)
	}
	return catalog.PrintEffective(cmd.OutOrStdout(), chosen)
}

// noPolicy explains why there is no policy at a path: a member of a pool has that of all.
func noPolicy(ctx context.Context, client *node.LocalClient, path string, all []catalog.Effective) error {
	var paths []string
	for _, e := range all {
		paths = append(paths, e.Path)
		if members, ok := strings.CutSuffix(e.Path, "/*"); ok && strings.HasPrefix(path, members+"/") {
			return fmt.Errorf("the members of a pool share one policy: nodeactor tree --policies '%s'", e.Path)
		}
	}
	return fmt.Errorf("there is no actor %s%s", path, catalog.DidYouMean(path, paths))
}
