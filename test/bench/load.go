package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// profileLimit is the longest time a load is profiled.
const profileLimit = 2 * time.Minute

// load runs the kit's measures on a side.
func load(ctx context.Context, o options, s side, r *results) error {
	for _, only := range measuresOf(o) {
		finish := s.profile(only)
		err := kbench(ctx, o, s, r, "", append([]string{"--only", only}, o.kbenchArgs...)...)
		finish()
		if err != nil {
			return err
		}
	}
	return nil
}

func (n *own) kbenchInto(ctx context.Context, r *results, prefix string, args ...string) error {
	return kbench(ctx, n.options, n, r, prefix, args...)
}

// kbench runs the kit's load program and keeps its lines, each measure's name with the prefix. A measure with errors is reported and
// the others go on.
func kbench(ctx context.Context, o options, s side, r *results, prefix string, args ...string) error {
	args = append([]string{"--kubeconfig", s.kubeconfig(), "--label", s.label(), "--procs", kbenchArg(s.processes())}, args...)
	cmd := exec.CommandContext(ctx, o.kbench, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopLimit
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	readErr := readLines(stdout, func(l line) {
		name, _ := l["measure"].(string)
		r.add(s.label(), prefix+name, l)
	})
	err = errors.Join(readErr, cmd.Wait())
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "bench: %s: some measures had errors\n", s.label())
		return nil
	}
	return err
}

func readLines(from io.Reader, each func(line)) error {
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		l := line{}
		if err := json.Unmarshal(scanner.Bytes(), &l); err != nil {
			return fmt.Errorf("cannot read line %q: %w", scanner.Text(), err)
		}
		each(l)
	}
	return scanner.Err()
}

// profile takes CPU profiles of one second after another until the returned function is called; pprof merges the files it is given.
// Without a folder for them it does nothing.
func (n *own) profile(name string) (finish func()) {
	if n.pprof == "" {
		return func() {}
	}
	ctx, cancel := context.WithTimeout(context.Background(), profileLimit)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			if err := n.fetchProfile(filepath.Join(n.pprof, fmt.Sprintf("%s-%03d.pprof", name, i))); err != nil {
				fmt.Fprintf(os.Stderr, "bench: cannot profile %s: %v\n", name, err)
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func (n *own) fetchProfile(file string) error {
	if err := os.MkdirAll(n.pprof, 0o755); err != nil {
		return err
	}
	response, err := http.Get(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=1", n.pprofAddr))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(f, response.Body)
	return err
}
