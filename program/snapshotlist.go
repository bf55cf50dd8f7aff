package program

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/nodeactor/nodeactor/store/snapshot"
)

// listFlags are the settings of `snapshot list`.
type listFlags struct {
	output string
	verify bool
	limit  int
}

// listed is one snapshot as `list -o json` prints it.
type listed struct {
	snapshot.Info
	Name     string `json:"name"`
	Verified *bool  `json:"verified,omitempty"`
	Problem  string `json:"problem,omitempty"`
}

func (s *snapshots) listCommand() *cobra.Command {
	f := listFlags{}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the snapshots in the data directory, the newest first",
		Args:    cobra.NoArgs,
		Long: `Lists the snapshots in the data directory, the newest first: name, when it was saved, the
revision of the store, the size, and why. Each was verified when it was saved. With --verify each
file is read whole once more, which takes its time; exit code 2 tells that one is damaged.

The list is printed as it is read, however long it is.`,
		Example: `  nodeactor snapshot list
  nodeactor snapshot list --verify
  nodeactor snapshot list -o json | jq -r '.[] | select(.reason == "upgrade").path'
  nodeactor snapshot list -o name --limit 1`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVarP(&f.output, "output", "o", "table", "table, name or json")
	cmd.Flags().BoolVar(&f.verify, "verify", false, "read each file and tell whether it is whole")
	cmd.Flags().IntVar(&f.limit, "limit", 0, "end after this `number` of them; all by default")
	words(cmd, "output", "table", "name", "json")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := oneOf("--output", f.output, "table", "name", "json"); err != nil {
			return err
		}
		if err := s.reachable(); err != nil {
			return err
		}
		ctx, stop := interruptible(cmd)
		defer stop()
		return s.list(ctx, f, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return cmd
}

func (s *snapshots) list(ctx context.Context, f listFlags, out, notes io.Writer) error {
	w := bufio.NewWriter(out)
	p := &printer{w: w, format: f.output, verified: f.verify}
	p.begin()
	damaged := 0
	for info, err := range snapshot.List(s.dir()) {
		if err != nil {
			return errors.Join(err, w.Flush())
		}
		if f.limit > 0 && p.n == f.limit {
			break
		}
		line := listed{Info: info, Name: info.Name()}
		if f.verify {
			bad, err := line.check(ctx)
			if err != nil {
				return errors.Join(err, w.Flush())
			}
			if bad {
				damaged++
			}
			_ = w.Flush()
		}
		if err := p.print(line); err != nil {
			return err
		}
	}
	p.end()
	if err := w.Flush(); err != nil {
		return err
	}
	if p.n == 0 {
		fmt.Fprintf(notes, "there is no snapshot in %s; nodeactor snapshot save makes one\n", s.dir())
	}
	if damaged > 0 {
		fmt.Fprintf(notes, "nodeactor: %d of %d snapshots are damaged; do not count on them\n", damaged, p.n)
		return exitCode(exitDamaged)
	}
	return nil
}

// check reads the file. What is wrong with it is no error of ours.
func (l *listed) check(ctx context.Context) (bad bool, err error) {
	_, err = snapshot.Verify(ctx, l.Path)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	good := err == nil
	l.Verified = &good
	if err != nil {
		l.Problem = oneLine(err.Error())
	}
	return !good, nil
}

// printer prints a list line by line.
type printer struct {
	w        io.Writer
	format   string
	verified bool
	n        int
}

func (p *printer) begin() {
	if p.format == "json" {
		fmt.Fprint(p.w, "[")
	}
}

func (p *printer) print(l listed) (err error) {
	switch p.format {
	case "name":
		_, err = fmt.Fprintln(p.w, l.Name)
	case "json":
		var b []byte
		if b, err = json.Marshal(l); err == nil {
			between := ",\n "
			if p.n == 0 {
				between = "\n "
			}
			_, err = fmt.Fprintf(p.w, "%s%s", between, b)
		}
	default:
		if p.n == 0 {
			p.row("NAME", "SAVED", "AGE", "REVISION", "SIZE", "REASON", "VERIFIED")
		}
		p.row(l.Name, l.Time.Local().Format(time.DateTime), ago(l.Time), fmt.Sprint(l.Revision), sizeText(l.Size), l.Reason, l.verdict())
	}
	p.n++
	return err
}

func (p *printer) row(name, saved, age, revision, size, reason, verified string) {
	if !p.verified {
		fmt.Fprintf(p.w, "%-44s  %-19s  %-6s  %-12s  %-8s  %s\n", name, saved, age, revision, size, reason)
		return
	}
	fmt.Fprintf(p.w, "%-44s  %-19s  %-6s  %-12s  %-8s  %-10s  %s\n", name, saved, age, revision, size, reason, verified)
}

func (p *printer) end() {
	if p.format != "json" {
		return
	}
	if p.n > 0 {
		fmt.Fprintln(p.w)
	}
	fmt.Fprintln(p.w, "]")
}

// verdict says whether the snapshot is whole, if that was looked at.
func (l listed) verdict() string {
	switch {
	case l.Verified == nil:
		return "-"
	case *l.Verified:
		return "good"
	}
	return "DAMAGED: " + l.Problem
}

func (s *snapshots) verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify FILE...",
		Short: "Prove that snapshots are whole",
		Args:  someSnapshots,
		Long: `Reads each file whole: its checksum has to be that of its content, and every page of the database
in it has to be there and in order. FILE is a path, a name as 'nodeactor snapshot list' prints it,
or newest.

Exit codes: 0 when all are good, 2 when one is damaged, 1 when one could not be read or found.`,
		Example: `  nodeactor snapshot verify newest
  nodeactor snapshot verify /backup/*.db`,
		ValidArgsFunction: s.complete(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd)
			defer stop()
			return s.verify(ctx, args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
}

// someSnapshots accepts one file or more.
func someSnapshots(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errNoSnapshot
	}
	return nil
}

func (s *snapshots) verify(ctx context.Context, files []string, out, notes io.Writer) error {
	code := 0
	for _, given := range files {
		path, err := s.find(ctx, given)
		var info snapshot.Info
		if err == nil {
			info, err = snapshot.Verify(ctx, path)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, snapshot.ErrDamaged):
			code = exitDamaged
		case err != nil:
			code = max(code, 1)
		}
		if err != nil {
			fmt.Fprintln(notes, "nodeactor:", oneLine(err.Error()))
			continue
		}
		fmt.Fprintf(out, "%s: good, revision %d, saved %s, %s\n", info.Path, info.Revision, info.Time.Local().Format(time.DateTime), sizeText(info.Size))
	}
	if code != 0 {
		return exitCode(code)
	}
	return nil
}
