package program

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/nodeactor/nodeactor/actors/node"
)

func configured(t *testing.T, yaml string) (*flagSet, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return &flagSet{file: file}, file
}

// TestPoliciesInAFile holds that overrides are read as people write them (a bare on is a truth
// value to YAML), and know where they were written.
func TestPoliciesInAFile(t *testing.T) {
	f, file := configured(t, `
nodeName: n
faultPolicies:
- path: node/core/scheduler
  on: &all
    panic: {do: park, backoff: {initial: 1s, factor: 2, cap: 1m, jitter: 0.2, reset: 2m}}
    hang: {do: restart}
    errorReturn: {do: restart}
    bindFailure: {do: stop}
- row: engine
  "on": *all
  windows: {hang: 45s}
`)
	c, err := f.load()
	if err != nil {
		t.Fatal(err)
	}
	if len(c.FaultPolicies) != 2 || c.FaultPolicies[1].Source != file+": faultPolicies[1]" || c.FaultPolicies[1].Windows.Hang != "45s" {
		t.Fatalf("read as %+v", c.FaultPolicies)
	}
	for _, o := range c.FaultPolicies {
		if len(o.On) != 4 || o.On["panic"].Do != "park" || *o.On["panic"].Backoff.Jitter != 0.2 || o.On["bindFailure"].Do != "stop" {
			t.Errorf("read as %+v", o)
		}
	}
}

// TestZeroIsNoDefault holds that a number set to zero is refused, and not taken for one that was left out.
func TestZeroIsNoDefault(t *testing.T) {
	for _, c := range []struct{ flag, file, want string }{
		{"--snapshot-keep=0", "", "--snapshot-every) to off"},
		{"--max-pods=0", "", "leave it out"},
		{"", "snapshotKeep: 0", "snapshotKeep 0 is not a number from 1 on"},
		{"", "maxPods: 0", "maxPods 0 is not a number from 1 on"},
	} {
		f, _ := configured(t, "nodeName: n\n"+c.file)
		fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
		file := f.file
		f.bind(fs)
		f.file = file
		if err := fs.Parse(strings.Fields(c.flag)); err != nil {
			t.Fatal(err)
		}
		if _, err := f.load(); !errors.Is(err, node.ErrConfig) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s%s: %v, want %q", c.flag, c.file, err, c.want)
		}
	}
}

func TestFilesAreReadStrictly(t *testing.T) {
	for yaml, want := range map[string]string{
		"faultPolicies: [{paht: node}]":                             `unknown field "paht"`,
		"faultPolicies: [{path: node, windows: {strat: 1s}}]":       `unknown field "strat"`,
		"faultPolicies:\n- path: node\n  path: node/core/scheduler": "already set",
		"faultPolicies: {path: node}":                               "faultPolicies has to be a list, not a mapping;",
		"maxPods: 3.5":                                              "maxPods has to be a whole number, not 3.5;",
		"faultPolicies: [{path: node, on: {panic: restart}}]":       "faultPolicies.on has to be a mapping, not a text;",
		"faultPolicies: [{path: node, windows: 5s}]":                "faultPolicies.windows has to be a mapping, not a text;",
	} {
		f, file := configured(t, yaml)
		if _, err := f.load(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line with %q and the file", yaml, err, want)
		}
	}
}

// TestHelpTeachesWhatIsAccepted holds the example of `run --help` to what is really accepted.
func TestHelpTeachesWhatIsAccepted(t *testing.T) {
	_, help, ok := strings.Cut(runCommand().Long, "\n  faultPolicies:\n")
	if !ok {
		t.Fatal("the help has no example of faultPolicies")
	}
	example, _, _ := strings.Cut(help, "\n\n")
	f, _ := configured(t, "nodeName: n\nfaultPolicies:\n"+example+"\n")
	cmd := rootCommand()
	cmd.SetArgs([]string{"run", "--config", f.file, "--print-policies"})
	var out strings.Builder
	cmd.SetOut(&out)
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{f.file + ": faultPolicies[0]", f.file + ": faultPolicies[1]"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %s:\n%s", want, out.String())
		}
	}
}
