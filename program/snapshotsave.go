package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/nodeactor/nodeactor/actors/node"
	"github.com/nodeactor/nodeactor/store/snapshot"
)

// toStdout is the file name that stands for standard output.
const toStdout = "-"

func (s *snapshots) saveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "save [FILE]",
		Short: "Save the store now",
		Args:  cobra.MaximumNArgs(1),
		Long: `Saves the store as it is at this moment and prints the path of the snapshot. Writes go on
meanwhile. Without FILE it goes into the data directory, where it stays until you remove it. FILE
may be a directory, or - for standard output; a file that exists is replaced, in one step and only
once the new one is whole.

A running node is asked for it. The files of one that is stopped are read, and not changed. If it
was killed, its last writes may be only in its log: that is said, and they are not in the snapshot;
start the node and save again to have them.

A save never takes the last of the disk: it ends with an error while the store still has room, and
leaves nothing behind.`,
		Example: `  nodeactor snapshot save
  nodeactor snapshot save /backup/$(date +%F).db
  nodeactor snapshot save - | ssh backup 'cat > today.db'`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.reachable(); err != nil {
				return err
			}
			ctx, stop := interruptible(cmd)
			defer stop()
			to := ""
			if len(args) == 1 {
				to = args[0]
			}
			return s.save(ctx, to, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
}

func (s *snapshots) save(ctx context.Context, to string, out, notes io.Writer) error {
	begin, p := time.Now(), newProgress("saving")
	source, ask := s.source(p)
	if !ask {
		if err := s.noteMissing(notes); err != nil {
			return err
		}
	}
	if to == toStdout {
		if f, ok := out.(*os.File); ok && isTerminal(f) {
			return errors.New("cannot save to a terminal; send standard output to a file or a program")
		}
		defer p.clear()
		return snapshot.Stream(ctx, source, out)
	}
	info, err := s.saveFile(ctx, to, source, ask, p)
	p.clear()
	if err != nil {
		return err
	}
	fmt.Fprintf(notes, "saved revision %d, %s in %s\n", info.Revision, sizeText(info.Size), time.Since(begin).Round(time.Millisecond))
	_, err = fmt.Fprintln(out, info.Path)
	return err
}

// saveFile saves where it was told to.
func (s *snapshots) saveFile(ctx context.Context, to string, source snapshot.Source, ask bool, p *progress) (snapshot.Info, error) {
	if to == "" && ask {
		return node.NewLocalClient(s.config().Socket()).SaveSnapshot(ctx, p.show)
	}
	if to == "" {
		return snapshot.Save(ctx, s.dir(), snapshot.Manual, source, snapshot.SaveOptions{})
	}
	abs, err := filepath.Abs(to)
	if err != nil {
		return snapshot.Info{}, err
	}
	if stat, err := os.Stat(abs); err == nil && stat.IsDir() {
		return snapshot.SaveIn(ctx, abs, snapshot.Manual, source, snapshot.SaveOptions{})
	}
	if _, err := os.Stat(filepath.Dir(abs)); errors.Is(err, fs.ErrNotExist) {
		return snapshot.Info{}, fmt.Errorf("cannot save snapshot: there is no directory %s; make it first", filepath.Dir(abs))
	}
	return snapshot.WriteFile(ctx, abs, source, snapshot.SaveOptions{})
}

// source reads from the running node, or from the files of a stopped one; ask tells which.
func (s *snapshots) source(p *progress) (source snapshot.Source, ask bool) {
	c := s.config()
	if node.Owner(c.DataDir) != 0 {
		return func(ctx context.Context, w io.Writer) error {
			counted := &counter{w: w, p: p}
			return node.NewLocalClient(c.Socket()).StreamSnapshot(ctx, counted, func(n int64) { counted.total = n })
		}, true
	}
	return func(ctx context.Context, w io.Writer) error {
		from, size, err := snapshot.Stopped(s.store())
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("there is no store in %s; name the data directory with --data-dir", c.DataDir)
		}
		if err != nil {
			return err
		}
		return from(ctx, &counter{w: w, p: p, total: size})
	}, false
}

// noteMissing says what a stopped node has only in its log.
func (s *snapshots) noteMissing(notes io.Writer) error {
	if _, _, err := snapshot.Stopped(s.store()); err != nil {
		return nil // saving says it
	}
	switch n, err := snapshot.Missing(s.store()); {
	case err != nil:
		fmt.Fprintf(notes, "note: %v\n", err)
	case n > 0:
		fmt.Fprintf(notes, "note: the node was not stopped in order: up to %d of its last writes are only in its log, and not in this snapshot; start the node and save again to have them\n", n)
	}
	return nil
}

// counter shows what passes.
type counter struct {
	w        io.Writer
	p        *progress
	n, total int64
}

// Write implements io.Writer.
func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	c.p.show(c.n, c.total)
	return n, err
}
