package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/nodeactor/nodeactor/actors/node"
)

// statusTimeout bounds each question to the node, so that `status` answers on a sick one too.
const statusTimeout = 3 * time.Second

func statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show whether this host's node runs, and the health of each part",
		GroupID: "node",
		Args:    cobra.NoArgs,
		Long: `Asks the node through its local socket, so it answers when the API's port is taken, too.
Exits with 0 when every part is alive and ready, with 1 otherwise.`,
	}
	dir := dataDirFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return printStatus(cmd.Context(), node.Config{DataDir: *dir}.WithDefaults(), cmd.OutOrStdout())
	}
	return cmd
}

func printStatus(ctx context.Context, c node.Config, out io.Writer) error {
	pid, err := runs(c)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "node process   pid %d, data directory %s\n", pid, c.DataDir)
	if cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig()); err == nil {
		fmt.Fprintf(out, "api            %s\nkubeconfig     %s\n", cfg.Host, c.Kubeconfig())
	}
	if last, ok := node.ReadLastExit(c.DataDir); ok {
		fmt.Fprintf(out, "last exit      %s ago, the node gave up: %s\n", ago(last.At), last.Reason)
	}
	client, sick := node.NewLocalClient(c.Socket()), false
	for _, path := range []string{"/readyz", "/livez"} {
		limited, cancel := context.WithTimeout(ctx, statusTimeout)
		ok, body, err := client.Health(limited, path)
		cancel()
		if err != nil {
			return fmt.Errorf("cannot ask the node: %w", err)
		}
		sick = sick || !ok
		fmt.Fprintf(out, "\n%s\n", strings.TrimSpace(body))
	}
	if sick {
		fmt.Fprintln(os.Stderr, "nodeactor: some parts are not healthy; nodeactor tree and nodeactor faults say more")
		return exitCode(1)
	}
	return nil
}
