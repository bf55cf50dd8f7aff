package program

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/nodeactor/nodeactor/actors/node"
)

// kubectlBinary is the real kubectl, built beside the daemon.
const kubectlBinary = "nodeactor-kubectl"

func kubectlCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "kubectl [--data-dir DIR] ...",
		Short:              "Run the real kubectl as the administrator of this host's node",
		GroupID:            "use",
		DisableFlagParsing: true,
		Example: `  nodeactor kubectl get pods -A
  nodeactor kubectl --data-dir /srv/n2 get nodes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, rest := takeDataDir(args)
			return runKubectl(dir, rest)
		},
	}
}

// takeDataDir removes a leading --data-dir from args; everything else is kubectl's.
func takeDataDir(args []string) (dir string, rest []string) {
	if len(args) >= 2 && args[0] == "--data-dir" {
		return args[1], args[2:]
	}
	if len(args) >= 1 && len(args[0]) > len("--data-dir=") && args[0][:len("--data-dir=")] == "--data-dir=" {
		return args[0][len("--data-dir="):], args[1:]
	}
	return "", args
}

func runKubectl(dir string, args []string) error {
	bin, err := sibling(kubectlBinary)
	if err != nil {
		return err
	}
	c := exec.Command(bin, args...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Env = os.Environ()
	if dir != "" || os.Getenv("KUBECONFIG") == "" && !hasKubeconfigFlag(args) {
		cfg := node.Config{DataDir: dir}.WithDefaults()
		if _, err := os.Stat(cfg.Kubeconfig()); err != nil && !asksNobody(args) {
			return fmt.Errorf("cannot read kubeconfig %s: no node was started on that directory, or you are not root; start one with: nodeactor run --data-dir %s", cfg.Kubeconfig(), cfg.DataDir)
		}
		c.Env = append(c.Env, "KUBECONFIG="+cfg.Kubeconfig())
	}
	err = c.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exitCode(max(exit.ExitCode(), 1))
	}
	return err
}

// asksNobody tells what kubectl answers without a cluster: its help.
func asksNobody(args []string) bool {
	return len(args) == 0 || args[0] == "help" || args[0] == "options" || args[0] == "completion" ||
		slices.Contains(args, "--help") || slices.Contains(args, "-h")
}

func hasKubeconfigFlag(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return a == "--kubeconfig" || len(a) > 13 && a[:13] == "--kubeconfig=" })
}

// sibling finds a program that is installed in the daemon's own folder.
func sibling(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("cannot find %s: %w", name, err)
	}
	path := filepath.Join(filepath.Dir(self), name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("cannot find %s beside %s; build it with 'make build' and install both in one folder", name, self)
	}
	return path, nil
}
