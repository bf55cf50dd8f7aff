// Command nodeactor runs a Kubernetes node that is a whole cluster, and looks after it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nodeactor/nodeactor/actors/node"
)

// version is set by the linker.
var version = "unknown"

func main() {
	if err := rootCommand().ExecuteContext(context.Background()); err != nil {
		var code exitCode
		if errors.As(err, &code) {
			os.Exit(int(code))
		}
		for finding := range strings.Lines(err.Error()) {
			fmt.Fprintln(os.Stderr, "nodeactor:", strings.TrimSpace(finding))
		}
		if errors.Is(err, node.ErrGaveUp) {
			os.Exit(node.ExitGaveUp)
		}
		os.Exit(1)
	}
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
