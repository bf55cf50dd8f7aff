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

// profileSeconds is how long a CPU profile runs beside a load; it is cut short when the load ends.
const profileSeconds = 120

// load runs the kit's measures on a side.
func load(ctx context.Context, o options, s side, r *results) error {
	for _, only := range measuresOf(o) {
		finish := func() {}
		if n, ok := s.(*own); ok && o.pprof != "" {
			finish = n.profile(only)
		}
		err := kbench(ctx, o, s, r, "", "--only", only)
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

// profile takes a CPU profile of the node until the returned function is called.
func (n *own) profile(name string) (finish func()) {
	ctx, cancel := context.WithTimeout(context.Background(), profileSeconds*time.Second)
	done := make(chan struct{})
	began := time.Now()
	go func() {
		defer close(done)
		if err := n.fetchTrace(ctx, name); err != nil {
			fmt.Fprintf(os.Stderr, "bench: cannot profile %s: %v\n", name, err)
		}
	}()
	return func() {
		defer cancel()
		fmt.Fprintf(os.Stderr, "bench: %s took %.1f s, its profile runs to its end\n", name, time.Since(began).Seconds())
		<-done
	}
}

// fetchTrace asks for a profile of profileLength, which the server ends by itself.
func (n *own) fetchTrace(ctx context.Context, name string) error {
	if err := os.MkdirAll(n.pprof, 0o755); err != nil {
		return err
	}
	url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", n.pprofAddr, int(profileLength(name).Seconds()))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	file, err := os.Create(filepath.Join(n.pprof, name+".pprof"))
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(file, response.Body)
	return err
}

// profileLength is about how long each load lasts.
func profileLength(name string) time.Duration {
	if name == "deploy" {
		return 8 * time.Second
	}
	return 4 * time.Second
}
