package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// process is one server process that is watched through /proc.
type process struct {
	name string
	pid  int
}

// clockTicks is the kernel's USER_HZ, 100 on every platform Go runs on.
const clockTicks = 100

func parseProcesses(list string) ([]process, error) {
	var out []process
	for part := range strings.SplitSeq(list, ",") {
		name, pid, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(pid)
		if err != nil {
			return nil, fmt.Errorf("cannot read process %q: %w", part, err)
		}
		out = append(out, process{name, n})
	}
	return out, nil
}

// kbenchArg names the processes as the kit wants them named.
func kbenchArg(processes []process) string {
	var parts []string
	for _, p := range processes {
		parts = append(parts, fmt.Sprintf("%s=%d", p.name, p.pid))
	}
	return strings.Join(parts, ",")
}

// usage is what processes have used since they started.
type usage struct {
	cpuSeconds   float64
	writtenBytes int64
}

func usageOf(processes []process) (usage, error) {
	var sum usage
	for _, p := range processes {
		u, err := p.usage()
		if err != nil {
			return sum, fmt.Errorf("cannot watch %s: %w", p.name, err)
		}
		sum.cpuSeconds += u.cpuSeconds
		sum.writtenBytes += u.writtenBytes
	}
	return sum, nil
}

func (p process) usage() (usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	if err != nil {
		return usage{}, err
	}
	// The name may hold spaces and parentheses: fields count from the last closing one.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return usage{}, fmt.Errorf("short stat line")
	}
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	io, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", p.pid))
	return usage{(user + system) / clockTicks, fieldOf(string(io), "write_bytes:")}, err
}

func fieldOf(text, key string) int64 {
	for l := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(l, key); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
			return n
		}
	}
	return 0
}

// watchIdle measures what the processes use while nothing is asked of them.
func watchIdle(ctx context.Context, processes []process, d time.Duration) (line, error) {
	before, err := usageOf(processes)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(d):
	}
	after, err := usageOf(processes)
	if err != nil {
		return nil, err
	}
	seconds := time.Since(began).Seconds()
	return line{
		"seconds": seconds, "cpu_percent": 100 * (after.cpuSeconds - before.cpuSeconds) / seconds,
		"write_bytes_per_s": float64(after.writtenBytes-before.writtenBytes) / seconds,
	}, nil
}
