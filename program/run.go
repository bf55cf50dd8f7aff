package program

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/nodeactor/nodeactor/actors/node"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

func runCommand() *cobra.Command {
	var flags flagSet
	var printPolicies bool
	cmd := &cobra.Command{
		Use:     "run",
		Short:   "Run this host's node in the foreground (as root)",
		GroupID: "node",
		Args:    cobra.NoArgs,
		Long: `Runs the node of this host in the foreground until SIGINT or SIGTERM. The first start
makes everything it needs in the data directory, the administrator's kubeconfig included.
Stopping it stops no container: the next start takes them over. 'nodeactor reset' removes
everything.

What happens to each actor on each kind of fault comes from the catalog. A configuration file
can override it for one actor (path; the members of a pool are POOL/*) or for all of a row:

  faultPolicies:
  - path: node/core/scheduler
    on:                               # all four, each with restart, stop, escalate or park
      panic:       {do: restart, backoff: {initial: 1s, factor: 2, cap: 1m, jitter: 0.2, reset: 2m}}
      hang:        {do: restart}      # without backoff: that of the catalog
      errorReturn: {do: restart}
      bindFailure: {do: restart}
    windows: {start: 1m, hang: 45s, stop: 20s}   # each may be left out
  - row: controller                   # supervisors have budgets of restarts
    restarts: {burst: {max: 30, within: 1m}, sustained: {max: 300, within: 1h}}
  - row: reconciler                   # hang also bounds each pass of a reconciler, 60s otherwise
    windows: {hang: 2m}

Exit codes: 0 when it was told to stop, 1 when it was refused or could not begin, 3 when a fault
escalated past the root: then it ended in order, the reason is in the data directory
(` + node.LastExitFile + `) and in 'nodeactor status', containers run on, and it wants to be started again.`,
		Example: `  nodeactor run
  nodeactor run --config /etc/nodeactor/config.yaml
  nodeactor run --config /etc/nodeactor/config.yaml --print-policies   # what would be done, and why
  nodeactor run --data-dir /srv/n2 --node-name n2 --api-addr :7443 --kubelet-addr :11250 \
      --etcd-addr off --cgroup-root /n2 --pod-cidr 10.245.0.0/24      # a second node on one host`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := flags.load()
			if err != nil {
				return err
			}
			if printPolicies || len(c.FaultPolicies) > 0 {
				policies, err := node.EffectivePolicies(c)
				if err != nil {
					return err
				}
				if printPolicies {
					return catalog.PrintEffective(cmd.OutOrStdout(), policies)
				}
			}
			return runNode(cmd.Context(), c, cmd.ErrOrStderr())
		},
	}
	flags.bind(cmd.Flags())
	cmd.Flags().BoolVar(&printPolicies, "print-policies", false, "print what would be done about each kind of fault, overrides included, and end")
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
