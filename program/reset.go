package program

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/nodeactor/nodeactor/actors/node"
)

func resetCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:     "reset",
		Short:   "Stop the node and every container, and remove everything of it from this host",
		GroupID: "node",
		Args:    cobra.NoArgs,
		Long: `Stops the node that runs on the data directory, ends its containers and removes their
cgroups, mounts, namespaces, links, firewall table and the data directory itself. All objects
and images of the cluster are lost. Without --yes it only says what it would remove. A directory that no node has made
is refused.

A node that systemd keeps running has to be taken from it first:
systemctl disable --now nodeactor`,
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "really do it")
	var c node.Config
	cmd.Flags().StringVar(&c.DataDir, "data-dir", node.DefaultDataDir, "`directory` of the node's state")
	cmd.Flags().StringVar(&c.CgroupRoot, "cgroup-root", "", "`path` of the cgroup above all pods, if the node was given one (default: as recorded)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return reset(cmd.Context(), c.WithDefaults(), yes, cmd.OutOrStdout())
	}
	return cmd
}

func reset(ctx context.Context, c node.Config, yes bool, out io.Writer) error {
	if err := node.Preflight(); err != nil {
		return err
	}
	say := func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
	if !yes {
		if err := node.Describe(c, say); err != nil {
			return err
		}
		return fmt.Errorf("nothing was removed; add --yes to do it")
	}
	if err := notUnderSystemd(c); err != nil {
		return err
	}
	return node.Reset(ctx, c, say)
}
