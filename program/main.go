package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nodeactor/nodeactor/actors/node"
)

// unknownVersion is shown by a program that does not say which version it is.
const unknownVersion = "unknown"

// version is this program's, as Main was told.
var version = unknownVersion

// Main is the whole of a nodeactor program: it reads the command line, does what it says, and ends the process. Options add to what the
// node runs.
func Main(options ...Option) {
	for _, option := range options {
		option(&extras)
	}
	if err := rootCommand().ExecuteContext(context.Background()); err != nil {
		os.Exit(complain(err))
	}
}

// complain prints an error, unless a child has, and gives the exit code it stands for.
func complain(err error) int {
	var code exitCode
	if errors.As(err, &code) {
		return int(code)
	}
	for finding := range strings.Lines(err.Error()) {
		fmt.Fprintln(os.Stderr, "nodeactor:", strings.TrimSpace(finding))
	}
	if errors.Is(err, node.ErrGaveUp) {
		return node.ExitGaveUp
	}
	return 1
}

// exitCode ends the process with a child's code, which has said all there is to say.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "nodeactor",
		Short: "One binary per Linux host that turns hosts into a self-healing Kubernetes cluster",
		Long: `nodeactor runs the Kubernetes API, the controllers, the scheduler and the kubelet of one
host as actors under one supervision tree. kubectl, Helm and client-go work against it
unchanged.

Start a node (as root), then look at it from another terminal:

  nodeactor run
  nodeactor status
  nodeactor tree
  nodeactor kubectl get nodes`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddGroup(&cobra.Group{ID: "node", Title: "The node:"}, &cobra.Group{ID: "tree", Title: "Seeing and steering its tree:"},
		&cobra.Group{ID: "use", Title: "Working with it:"})
	root.AddCommand(runCommand(), statusCommand(), resetCommand(), snapshotCommand(), treeCommand(), faultsCommand(), restartCommand(), kubectlCommand(), imageCommand(), etcdCommand(), versionCommand())
	refuseUnknown(root)
	return root
}

// refuseUnknown makes commands that only have others below them refuse a word that is none of those: the library would print their help
// and call it a success.
func refuseUnknown(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		if cmd.HasSubCommands() && !cmd.Runnable() {
			cmd.SuggestionsMinimumDistance = 2
			cmd.RunE = unknownBelow
		}
	}
}

func unknownBelow(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	hint := fmt.Sprintf("%s --help lists them", cmd.CommandPath())
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("unknown command %q for %q; %s", args[0], cmd.CommandPath(), hint)
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the versions of nodeactor and of the Kubernetes API it serves",
		GroupID: "use",
		Args:    cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(cmd.OutOrStdout(), "nodeactor %s\nkubernetes %s\n", version, kubeVersion())
		},
	}
}
