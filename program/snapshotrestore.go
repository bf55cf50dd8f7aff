package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/nodeactor/nodeactor/actors/node"
	"github.com/nodeactor/nodeactor/store/snapshot"
)

// restoreFlags are the settings of `snapshot restore`.
type restoreFlags struct {
	nodeName string
	force    bool
}

func (s *snapshots) restoreCommand() *cobra.Command {
	var f restoreFlags
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make the store of a stopped node from a snapshot",
		Args:  oneSnapshot,
		Long: `Makes the store of a stopped node from a snapshot, which is verified first. FILE is a path, a name as
'nodeactor snapshot list' prints it, or newest.

With --force a store that is there already is kept beside as store.before-restore-TIME; remove it when
you are sure. The restored store takes its place in one step: whatever interrupts it, the store is
the old one or the new one.

No client sees time go back: the restored store begins far above every revision that was handed out
before, and watches from then are answered with 410 Gone, on which clients list anew. It has one
member, whatever it was saved from. When the node
starts, pods that are in the snapshot are started unless their containers still run, and containers
of pods that are not in it are ended.

To move a cluster to another host, put the folder pki of the old data directory into the new one
before the first start, and give the node its old name with --node-name.`,
		Example: `  systemctl stop nodeactor
  nodeactor snapshot list
  nodeactor snapshot restore newest --force
  systemctl start nodeactor`,
		ValidArgsFunction: s.complete(false),
	}
	cmd.Flags().BoolVar(&f.force, "force", false, "restore although there is a store, which is kept beside")
	cmd.Flags().StringVar(&f.nodeName, "node-name", "", "`name` of the node (default: that of the data directory, or the host name)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := s.reachable(); err != nil {
			return err
		}
		ctx, stop := interruptible(cmd)
		defer stop()
		return s.restore(ctx, args[0], f, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return cmd
}

var errNoSnapshot = errors.New("say which snapshot: a file, a name that nodeactor snapshot list prints, or newest")

// oneSnapshot accepts one file.
func oneSnapshot(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return errNoSnapshot
	case len(args) > 1:
		return fmt.Errorf("give one snapshot, not %d", len(args))
	}
	return nil
}

func (s *snapshots) restore(ctx context.Context, given string, f restoreFlags, out, notes io.Writer) error {
	c := node.Config{DataDir: s.dataDir, NodeName: f.nodeName}.WithDefaults()
	path, err := s.find(ctx, given)
	if err != nil {
		return err
	}
	if err := node.HasOwnStore(c.DataDir); err != nil {
		return fmt.Errorf("cannot restore snapshot: %w; restore it into that cluster with etcdutl snapshot restore", err)
	}
	lock, err := node.Lock(c.DataDir)
	if errors.Is(err, node.ErrInUse) {
		return fmt.Errorf("%w; its store can be restored only while it is stopped", err)
	}
	if err != nil {
		return err
	}
	defer lock.Release()
	r, err := snapshot.Restore(ctx, path, s.store(), snapshot.Options{
		NodeName: c.NodeName, MinRevision: s.highest(), Aside: f.force, Log: slog.New(slog.NewTextHandler(notes, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Progress: func(step string) { fmt.Fprintln(notes, step) },
	})
	return s.tell(r, err, c, out, notes)
}

// tell says how a restore ended, and what to do next.
func (s *snapshots) tell(r snapshot.Restored, err error, c node.Config, out, notes io.Writer) error {
	switch {
	case errors.Is(err, snapshot.ErrNotEmpty):
		return fmt.Errorf("%w; add --force to keep it beside and restore in its place", err)
	case errors.Is(err, snapshot.ErrDamaged):
		fmt.Fprintf(notes, "nodeactor: %s\nnodeactor: nothing was changed; nodeactor snapshot list --verify shows which snapshots are good\n", oneLine(err.Error()))
		return exitCode(exitDamaged)
	case err != nil:
		return err
	}
	fmt.Fprintf(out, "restored %s of %s, revision %d; the store goes on from revision %d\n", r.Snapshot.Name(), r.Snapshot.Time.Local().Format("2006-01-02 15:04:05"), r.Snapshot.Revision, r.Revision)
	if r.Aside != "" {
		fmt.Fprintf(out, "the store that was there is kept in %s; remove it when you are sure\n", r.Aside)
	}
	fmt.Fprintf(out, "start the node:   nodeactor run --data-dir %s\n", c.DataDir)
	return nil
}

// highest is the highest revision that any snapshot of the data directory tells of.
func (s *snapshots) highest() (revision int64) {
	for info, err := range snapshot.List(s.dir()) {
		if err != nil {
			break
		}
		revision = max(revision, info.Revision)
	}
	return revision
}
