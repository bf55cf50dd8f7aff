package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
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
		Long:    "Exits with 0 when every part is alive and ready, with 1 otherwise.",
	}
	dir := dataDirFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return printStatus(cmd.Context(), node.Config{DataDir: *dir}.WithDefaults(), cmd.OutOrStdout())
	}
	return cmd
}

func printStatus(ctx context.Context, c node.Config, out io.Writer) error {
	pid := node.Owner(c.DataDir)
	if pid == 0 {
		return fmt.Errorf("no node runs on %s; start one with: nodeactor run --data-dir %s", c.DataDir, c.DataDir)
	}
	fmt.Fprintf(out, "node process   pid %d, data directory %s\n", pid, c.DataDir)
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return fmt.Errorf("cannot read kubeconfig: %w; the node may still be starting", err)
	}
	fmt.Fprintf(out, "api            %s\nkubeconfig     %s\n", cfg.Host, c.Kubeconfig())
	sick := false
	for _, path := range []string{"/readyz", "/livez"} {
		ok, body, err := ask(ctx, cfg, path+"?verbose")
		if err != nil {
			return fmt.Errorf("cannot reach the API at %s: %w", cfg.Host, err)
		}
		sick = sick || !ok
		fmt.Fprintf(out, "\n%s\n", strings.TrimSpace(body))
	}
	if sick {
		fmt.Fprintln(os.Stderr, "nodeactor: some parts are not healthy; the node's log says why")
		return exitCode(1)
	}
	return nil
}

// ask gets one path as the administrator; ok tells whether the answer was 200.
func ask(ctx context.Context, cfg *rest.Config, path string) (ok bool, body string, err error) {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = statusTimeout
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return false, "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.Host+path, nil)
	if err != nil {
		return false, "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return false, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode == http.StatusOK, string(b), err
}
