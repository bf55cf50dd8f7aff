package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// The measures of operators need no upstream side: nodeactor's SDK is run in processes of this program.
const (
	// operatorsOnly is the value of --only that runs them alone.
	operatorsOnly = "operators"
	// workerCommand is the first argument of a process that runs an operator.
	workerCommand = "operator-worker"
	// rateManifests are kept busy while rateFor passes, after rateSettle in which leases find their processes.
	rateManifests       = 3000
	rateSettle, rateFor = 20 * time.Second, 20 * time.Second
	// workerLimit bounds the life of a process.
	workerLimit = 20 * time.Minute
)

// measureOperators runs an operator with very many manifests, and one in one and in three processes.
func measureOperators(ctx context.Context, o options, r *results, work string) error {
	if err := startWorker(ctx, r, "full", filepath.Join(work, "full"), "--manifests", strconv.Itoa(o.many), "--rest", o.idle.String()); err != nil {
		return fmt.Errorf("cannot measure %d manifests: %w", o.many, err)
	}
	for _, processes := range []int{1, 3} {
		if err := measureRate(ctx, r, processes, filepath.Join(work, fmt.Sprint("rate", processes))); err != nil {
			return fmt.Errorf("cannot measure the rate of %d processes: %w", processes, err)
		}
	}
	return nil
}

// measureRate lets processes share the work on one store; each tells how many passes it ran.
func measureRate(ctx context.Context, r *results, processes int, dir string) error {
	failed := make(chan error, processes)
	lines := &results{out: r.out}
	for i := range processes {
		go func() {
			failed <- startWorker(ctx, lines, "rate", dir, "--name", fmt.Sprint("worker-", i+1), "--manifests", strconv.Itoa(rateManifests))
		}()
	}
	var err error
	for range processes {
		err = errors.Join(err, <-failed)
	}
	rate := 0.0
	for _, v := range lines.values(operatorsLabel, "operators_rate_part", key("per_s")) {
		rate += v
	}
	if err == nil {
		r.add(operatorsLabel, fmt.Sprint("operators_rate_", processes), line{"per_s": rate, "n": processes})
	}
	return err
}

// operatorsLabel is the side that the measures of operators belong to.
const operatorsLabel = "nodeactor"

// startWorker runs a process to its end, and keeps what it measured.
func startWorker(ctx context.Context, r *results, mode, dir string, args ...string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, workerLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, append([]string{workerCommand, "--mode", mode, "--dir", dir}, args...)...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		l := line{}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return errors.Join(fmt.Errorf("cannot read what a worker measured: %w", err), cmd.Wait())
		}
		measure, _ := l["measure"].(string)
		r.add(operatorsLabel, measure, l)
	}
	return cmd.Wait()
}
