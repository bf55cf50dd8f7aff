package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/nodeactor/nodeactor/actors/node"
)

func runCommand() *cobra.Command {
	var flags flagSet
	cmd := &cobra.Command{
		Use:     "run",
		Short:   "Run this host's node in the foreground (as root)",
		GroupID: "node",
		Args:    cobra.NoArgs,
		Long: `Runs the node of this host in the foreground until SIGINT or SIGTERM. The first start
makes everything it needs in the data directory, the administrator's kubeconfig included.
Stopping it stops no container: the next start takes them over. 'nodeactor reset' removes
everything.`,
		Example: `  nodeactor run
  nodeactor run --config /etc/nodeactor/config.yaml
  nodeactor run --data-dir /srv/n2 --node-name n2 --api-addr :7443 --kubelet-addr :11250 \
      --etcd-addr off --cgroup-root /n2 --pod-cidr 10.245.0.0/24      # a second node on one host`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := flags.load()
			if err != nil {
				return err
			}
			return runNode(cmd.Context(), c, cmd.ErrOrStderr())
		},
	}
	flags.bind(cmd.Flags())
	return cmd
}

func runNode(ctx context.Context, c node.Config, out io.Writer) error {
	if err := node.Preflight(); err != nil {
		return err
	}
	lock, err := node.Lock(c.DataDir)
	if err != nil {
		return err
	}
	defer lock.Release()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	report, err := node.Run(ctx, c, node.NewLogger(c, os.Stderr))
	// A second signal must be able to end a stop that takes too long.
	stop()
	if err != nil {
		return err
	}
	fmt.Fprint(out, report.Farewell(c))
	return nil
}
