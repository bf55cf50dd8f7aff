package program

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/nodeactor/nodeactor/actors/node"
	"github.com/nodeactor/nodeactor/store/snapshot"
)

const (
	// exitDamaged is the exit code when a snapshot is not whole.
	exitDamaged = 2
	// newest is the word for the newest snapshot that verifies.
	newest = "newest"
)

// snapshots is what the commands about snapshots share.
type snapshots struct{ dataDir string }

func (s *snapshots) config() node.Config { return node.Config{DataDir: s.dataDir}.WithDefaults() }

// dir is where the node keeps its snapshots.
func (s *snapshots) dir() string { return filepath.Join(s.config().DataDir, snapshot.Dir) }

// store is the store's directory.
func (s *snapshots) store() string { return filepath.Join(s.config().DataDir, node.StoreDir) }

func snapshotCommand() *cobra.Command {
	s := &snapshots{}
	cmd := &cobra.Command{
		Use:     "snapshot",
		Short:   "Save the store, list and verify what was saved, and restore it",
		GroupID: "node",
		Long: `A snapshot is a copy of all objects of the cluster at one moment, in one file, with a checksum.
The node saves one by itself each hour in which something was written, and before another version
of nodeactor opens the store; they lie in the data directory's folder ` + snapshot.Dir + `. Their names tell when
they were saved, the revision of the store, and why.

Of those saved by the hour the newest 24 are kept, and the newest of each of the last seven days
(nodeactor run --snapshot-every, --snapshot-keep); of those saved before an upgrade the newest
five. Those you save yourself stay until you remove them: they are plain files.

A snapshot has what the API knows. It does not have the cluster's keys (the folder pki of the data
directory), the key file of --encryption-provider-config, images, or what pods wrote to volumes.
To be safe from the loss of this host, copy snapshots and pki elsewhere.

Files are etcd's own format: etcdutl snapshot status reads them, and what etcdctl saved can be restored.

Exit codes: 0 when it was done, 2 when a snapshot is damaged, 1 when anything else was in the way.`,
		Example: `  nodeactor snapshot save                        # into the data directory
  nodeactor snapshot save /backup/today.db
  nodeactor snapshot list
  nodeactor snapshot verify newest
  systemctl stop nodeactor && nodeactor snapshot restore newest --force && systemctl start nodeactor`,
	}
	cmd.PersistentFlags().StringVar(&s.dataDir, "data-dir", node.DefaultDataDir, "`directory` of the node's state")
	_ = cmd.MarkPersistentFlagDirname("data-dir")
	cmd.AddCommand(s.saveCommand(), s.listCommand(), s.verifyCommand(), s.restoreCommand())
	return cmd
}

// interruptible is the context of a command that cleans up when it is interrupted.
func interruptible(cmd *cobra.Command) (context.Context, func()) {
	return signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
}

// reachable refuses a directory that only root may look into.
func (s *snapshots) reachable() error {
	if _, err := os.Stat(s.store()); errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("cannot read data directory %s: permission denied; only root may, so use sudo", s.config().DataDir)
	}
	return nil
}

// find is the path of a snapshot that was given as a path, as a name in the data directory, or as the word newest.
func (s *snapshots) find(ctx context.Context, given string) (string, error) {
	if given == newest {
		info, err := snapshot.Newest(ctx, s.dir())
		return info.Path, err
	}
	stat, err := os.Stat(given)
	if err == nil && stat.IsDir() {
		return "", fmt.Errorf("cannot read snapshot %s: it is a directory; give one of its files, such as %s", given, filepath.Join(given, "*.db"))
	}
	if err == nil {
		return given, nil
	}
	if strings.ContainsRune(given, filepath.Separator) {
		return "", fmt.Errorf("cannot read snapshot: %w; nodeactor snapshot list shows those of the node", err)
	}
	path := filepath.Join(s.dir(), given)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("there is no snapshot %s, neither here nor in %s; nodeactor snapshot list shows those that are there", given, s.dir())
	}
	return path, nil
}

// complete offers the names of snapshots, the newest first, and files.
func (s *snapshots) complete(many bool) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && !many {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if strings.ContainsRune(typed, filepath.Separator) || strings.HasPrefix(typed, ".") {
			return []string{"db"}, cobra.ShellCompDirectiveFilterFileExt
		}
		var offered []string
		if strings.HasPrefix(newest, typed) {
			offered = append(offered, cobra.CompletionWithDesc(newest, "the newest that is whole"))
		}
		for info, err := range snapshot.List(s.dir()) {
			if err != nil || len(offered) == completeLimit {
				break
			}
			if strings.HasPrefix(info.Name(), typed) {
				offered = append(offered, cobra.CompletionWithDesc(info.Name(), fmt.Sprintf("%s ago, %s", ago(info.Time), info.Reason)))
			}
		}
		return offered, cobra.ShellCompDirectiveKeepOrder
	}
}

func sizeText(bytes int64) string {
	switch {
	case bytes >= 1e9:
		return fmt.Sprintf("%.1fG", float64(bytes)/1e9)
	case bytes >= 1e6:
		return fmt.Sprintf("%.1fM", float64(bytes)/1e6)
	}
	return fmt.Sprintf("%.1fk", float64(bytes)/1e3)
}

// progress shows on a terminal how far a save is, and clears that away in the end.
type progress struct {
	verb string
	on   bool
	said time.Time
}

func newProgress(verb string) *progress { return &progress{verb: verb, on: isTerminal(os.Stderr)} }

func (p *progress) show(written, total int64) {
	if !p.on || time.Since(p.said) < 100*time.Millisecond {
		return
	}
	p.said = time.Now()
	of := ""
	if total > 0 {
		of = " of about " + sizeText(total)
	}
	fmt.Fprintf(os.Stderr, "\r\x1b[K%s: %s%s", p.verb, sizeText(written), of)
}

func (p *progress) clear() {
	if p.on && !p.said.IsZero() {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
}
