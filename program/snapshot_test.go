package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/nodeactor/nodeactor/store/snapshot"
)

// namesOnly makes files with the names of n snapshots, one a minute, and nothing good in them.
func namesOnly(t *testing.T, dataDir string, n int) {
	t.Helper()
	dir := filepath.Join(dataDir, snapshot.Dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range n {
		name := fmt.Sprintf("%s-%d-periodic.db", first.Add(time.Duration(i)*time.Minute).Format("20060102T150405Z"), 100+i)
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// tool runs the program's command line in this process.
func tool(args ...string) (out, notes string, err error) {
	var o, n bytes.Buffer
	cmd := rootCommand()
	cmd.SetOut(&o)
	cmd.SetErr(&n)
	cmd.SetArgs(args)
	err = cmd.Execute()
	return o.String(), n.String(), err
}

// TestP27_ListOfTenThousandSnapshots holds that a list that is very long is printed like a short one.
func TestP27_ListOfTenThousandSnapshots(t *testing.T) {
	dir := t.TempDir()
	const n = 10_000
	namesOnly(t, dir, n)
	out, _, err := tool("snapshot", "list", "--data-dir", dir)
	if err != nil || strings.Count(out, "\n") != n+1 || !strings.HasPrefix(out, "NAME ") {
		t.Fatalf("the table has %d lines: %v", strings.Count(out, "\n"), err)
	}
	out, _, err = tool("snapshot", "list", "--data-dir", dir, "-o", "json")
	var all []listed
	if err != nil || json.Unmarshal([]byte(out), &all) != nil || len(all) != n || all[0].Revision != 100+n-1 {
		t.Fatalf("%d were printed as JSON: %v", len(all), err)
	}
	out, _, err = tool("snapshot", "list", "--data-dir", dir, "-o", "name", "--limit", "2")
	if err != nil || out != all[0].Name+"\n"+all[1].Name+"\n" {
		t.Errorf("the first two are %q: %v", out, err)
	}
}

func TestSnapshotListIsCleanForScripts(t *testing.T) {
	dir := t.TempDir()
	out, notes, err := tool("snapshot", "list", "--data-dir", dir)
	if err != nil || out != "" || !strings.Contains(notes, "nodeactor snapshot save makes one") {
		t.Errorf("an empty list: %q, %q, %v", out, notes, err)
	}
	out, _, err = tool("snapshot", "list", "--data-dir", dir, "-o", "json")
	if err != nil || strings.TrimSpace(out) != "[]" {
		t.Errorf("an empty list as JSON: %q, %v", out, err)
	}
	namesOnly(t, dir, 3)
	out, notes, err = tool("snapshot", "list", "--data-dir", dir, "--verify")
	if !errors.Is(err, exitCode(exitDamaged)) || strings.Count(out, "DAMAGED: ") != 3 || !strings.Contains(notes, "3 of 3 snapshots are damaged") {
		t.Errorf("verified damaged ones: %v\n%s%s", err, out, notes)
	}
	if _, _, err := tool("snapshot", "list", "--data-dir", dir, "-o", "yml"); err == nil || !strings.Contains(err.Error(), "table, name or json") {
		t.Errorf("an unknown format: %v", err)
	}
}

// TestSnapshotErrorsSayWhatToDo holds that what is refused is refused with the next step.
func TestSnapshotErrorsSayWhatToDo(t *testing.T) {
	dir := t.TempDir()
	namesOnly(t, dir, 1)
	for _, c := range []struct {
		want string
		args []string
	}{
		{"nodeactor snapshot list shows", []string{"verify", "nosuch"}},
		{"cannot read snapshot", []string{"restore", filepath.Join(dir, "nosuch.db")}},
		{"say which snapshot", []string{"restore"}},
		{"say which snapshot", []string{"verify"}},
		{"it is a directory; give one of its files", []string{"verify", dir}},
		{"it is a directory; give one of its files", []string{"restore", dir}},
		{"give one snapshot, not 2", []string{"restore", "a", "b"}},
		{"there is no good snapshot", []string{"restore", "newest"}},
		{"there is no store in " + dir, []string{"save"}},
		{"make it first", []string{"save", filepath.Join(dir, "absent", "x.db")}},
		{"nothing was changed; nodeactor snapshot list --verify", []string{"restore", "20260101T000000Z-100-periodic.db"}},
	} {
		out, notes, err := tool(append([]string{"snapshot", "--data-dir", dir}, c.args...)...)
		if err == nil || !strings.Contains(notes+err.Error(), c.want) {
			t.Errorf("%v: %v, want %q\n%s", c.args, err, c.want, notes)
		}
		if out != "" {
			t.Errorf("%v prints %q", c.args, out)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "store", "member")); err == nil {
		t.Error("a refused restore has made a store")
	}
}

func TestSnapshotNamesAreCompleted(t *testing.T) {
	dir := t.TempDir()
	namesOnly(t, dir, 300)
	s := &snapshots{dataDir: dir}
	offered, directive := s.complete(false)(nil, nil, "")
	if len(offered) != completeLimit || !strings.HasPrefix(offered[0], newest) || !strings.HasPrefix(offered[1], "20260101T0459") || directive&cobra.ShellCompDirectiveNoFileComp != 0 {
		t.Errorf("offered are %d: %.3q, %d", len(offered), offered, directive)
	}
	if offered, directive := s.complete(false)(nil, nil, "./b"); directive != cobra.ShellCompDirectiveFilterFileExt || len(offered) != 1 || offered[0] != "db" {
		t.Errorf("for a path: %q, %d", offered, directive)
	}
	if offered, _ := s.complete(false)(nil, []string{"x"}, ""); len(offered) != 0 {
		t.Errorf("a second snapshot: %q", offered)
	}
}
