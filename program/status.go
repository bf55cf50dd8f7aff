package program

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/nodeactor/nodeactor/actors/node"
	"github.com/nodeactor/nodeactor/store/snapshot"
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
Exits with 0 when every part is alive and ready, with 1 otherwise. Of each part that is not, it
says what the tree knows: its state, what it is busy with, its last fault.`,
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
	if saved, ok, err := snapshot.Latest(filepath.Join(c.DataDir, snapshot.Dir)); err == nil && ok {
		fmt.Fprintf(out, "last snapshot  %s ago, %s\n", ago(saved.Time), saved.Name())
	}
	client, sick := node.NewLocalClient(c.Socket()), false
	printStore(ctx, client, out)
	printEtcd(ctx, client, out)
	failing, said := map[string]bool{}, map[string]bool{}
	for _, path := range []string{"/readyz", "/livez"} {
		limited, cancel := context.WithTimeout(ctx, statusTimeout)
		ok, body, err := client.Health(limited, path)
		cancel()
		if err != nil {
			return fmt.Errorf("cannot ask the node: %w", err)
		}
		sick = sick || !ok
		noteFailing(failing, body)
		fmt.Fprintf(out, "\n%s", news(body, said))
	}
	if sick {
		explain(ctx, client, failing, out)
		fmt.Fprintln(os.Stderr, "nodeactor: some parts are not healthy; nodeactor tree and nodeactor faults say more")
		return exitCode(1)
	}
	return nil
}

// news is what of a list of checks was not said yet.
func news(body string, said map[string]bool) string {
	var fresh strings.Builder
	for line := range strings.Lines(body) {
		if line = strings.TrimSpace(line); line != "" && !said[line] {
			said[line] = true
			fresh.WriteString(line + "\n")
		}
	}
	return fresh.String()
}

// noteFailing collects the paths of the actors behind the checks that failed.
func noteFailing(into map[string]bool, body string) {
	for line := range strings.Lines(body) {
		if rest, ok := strings.CutPrefix(line, "[-]"); ok {
			name, _, _ := strings.Cut(rest, " ")
			into["node/"+name] = true
		}
	}
}

// explain says of each failing actor what the tree knows: the checks, which anybody may read, keep it to themselves.
func explain(ctx context.Context, client *node.LocalClient, failing map[string]bool, out io.Writer) {
	limited, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	list, err := client.Actors(limited, node.ActorQuery{All: true, Depth: -1})
	if err != nil {
		fmt.Fprintf(os.Stderr, "nodeactor: cannot read the tree: %v\n", err)
		return
	}
	fmt.Fprintln(out)
	for _, a := range list.Actors {
		if failing[a.Path] {
			fmt.Fprintln(out, ailment(a, list.At))
		}
	}
}

// ailment is what is wrong with an actor, in one line.
func ailment(a node.ActorLine, now time.Time) string {
	line := a.Path + ": " + stateText(a)
	if a.BusySeconds >= 1 {
		line += fmt.Sprintf(", busy with %s for %s", a.BusyWith, secondsText(a.BusySeconds))
	}
	if a.NextTry != nil {
		line += ", next try " + nextText(a.NextTry, now)
	}
	if f := a.LastFault; f != nil {
		line += fmt.Sprintf("; %s %s ago in %s: %s", f.Kind, secondsText(max(now.Sub(f.At).Seconds(), 0)), f.Message, oneLine(f.Error))
	}
	return line
}
