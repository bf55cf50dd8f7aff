package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"

	"github.com/nodeactor/nodeactor/actors/node"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// connect returns the client of the node that runs on a data directory, or says why there
// is none.
func connect(dir string) (*node.LocalClient, error) {
	c := node.Config{DataDir: dir}.WithDefaults()
	if _, err := runs(c); err != nil {
		return nil, err
	}
	return node.NewLocalClient(c.Socket()), nil
}

// runs returns the process of the node, or says why it cannot be talked to.
func runs(c node.Config) (pid int, err error) {
	if _, err := os.Stat(c.Socket()); errors.Is(err, fs.ErrPermission) {
		return 0, fmt.Errorf("cannot reach the node on %s: permission denied; only root may, so use sudo", c.DataDir)
	}
	if pid = node.Owner(c.DataDir); pid == 0 {
		return 0, noNode(c)
	}
	return pid, nil
}

// onePath accepts the path of one actor, or none where that means all.
func onePath(optional bool) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) > 1:
			return fmt.Errorf("give one path, not %d", len(args))
		case len(args) == 0 && !optional:
			return fmt.Errorf("give the path of an actor, such as node/core/scheduler; nodeactor tree lists them")
		}
		return nil
	}
}

// noNode says that nothing runs on a directory, and why if that is known.
func noNode(c node.Config) error {
	why := ""
	if last, ok := node.ReadLastExit(c.DataDir); ok {
		why = fmt.Sprintf("; the last one gave up %s ago: %s", ago(last.At), last.Reason)
	}
	return fmt.Errorf("no node runs on %s; start one with: nodeactor run --data-dir %s%s", c.DataDir, c.DataDir, why)
}

// ago is the age of a moment in a few characters.
func ago(t time.Time) string { return duration.HumanDuration(time.Since(t).Round(time.Second)) }

// oneOf refuses a value that is not in a list, and says which is near.
func oneOf(flag, value string, allowed ...string) error {
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	return fmt.Errorf("%s %q is not one of %s%s", flag, value, list(allowed), catalog.DidYouMean(value, allowed))
}

func list(words []string) (s string) {
	for i, w := range words {
		switch {
		case i == 0:
		case i == len(words)-1:
			s += " or "
		default:
			s += ", "
		}
		s += w
	}
	return s
}

// encode writes v as JSON or YAML.
func encode(cmd *cobra.Command, format string, v any) error {
	var b []byte
	var err error
	if format == "yaml" {
		b, err = yaml.Marshal(v)
	} else {
		b, err = json.MarshalIndent(v, "", "  ")
		b = append(b, '\n')
	}
	if err == nil {
		_, err = cmd.OutOrStdout().Write(b)
	}
	return err
}
