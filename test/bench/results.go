package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// line is one measurement, as it is kept in the raw file.
type line map[string]any

// results keeps every line of the run and writes each to the raw file at once.
type results struct {
	out   io.Writer
	mu    sync.Mutex
	lines []line
}

func (r *results) add(label, measure string, l line) {
	l["label"], l["measure"] = label, measure
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, l)
	if b, err := json.Marshal(l); err == nil {
		fmt.Fprintf(r.out, "%s\n", b)
	}
	fmt.Fprintf(os.Stderr, "bench: %-10s %s\n", label, brief(measure, l))
}

// brief is a line for the eyes of whoever waits for the end of the run.
func brief(measure string, l line) string {
	text := measure
	for _, key := range []string{"error", "first_error", "seconds", "per_s", "calm_p50_ms", "calm_p99_ms", "p50_ms", "p99_ms", "p50_ratio", "p99_ratio", "panics_per_s", "rss_mib", "cpu_percent", "write_bytes_per_s", "api_s", "node_ready_s", "usable_s", "bound_s", "megabytes"} {
		if v, ok := l[key]; ok {
			text += fmt.Sprintf("  %s=%v", key, v)
		}
	}
	return text
}

// values collects one field of one measure over the rounds; lines that had errors do not count.
func (r *results) values(label, measure string, field func(line) (float64, bool)) []float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var values []float64
	for _, l := range r.lines {
		if l["label"] != label || l["measure"] != measure || failed(l) {
			continue
		}
		if v, ok := field(l); ok {
			values = append(values, v)
		}
	}
	return values
}

func failed(l line) bool {
	errors, _ := number(l["errors"])
	return errors > 0 || l["error"] != nil
}

// number reads a field of a line, whether it was decoded or made here.
func number(v any) (float64, bool) {
	switch n := v.(type) {
	case float64:
		return n, true
	case int:
		return float64(n), true
	case int64:
		return float64(n), true
	}
	return 0, false
}

// percentile is the nearest-rank percentile; p is 1 to 100.
func percentile(values []float64, p int) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(max((len(sorted)*p+99)/100-1, 0), len(sorted)-1)]
}

// median of an even number of values is the mean of the middle two.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// sizes measures the programs that make up each side.
func (r *results) sizes(o options) {
	sets := map[string][]string{
		"upstream":  {filepath.Join(o.peerBin, "etcd"), filepath.Join(o.peerBin, "kube-apiserver"), filepath.Join(o.peerBin, "kube-controller-manager"), filepath.Join(o.peerBin, "kube-scheduler")},
		"nodeactor": {filepath.Join(o.bin, "nodeactor")},
	}
	for label, files := range sets {
		var total int64
		for _, file := range files {
			info, err := os.Stat(file)
			if err != nil {
				total = 0
				break
			}
			total += info.Size()
		}
		if total > 0 {
			r.add(label, "size", line{"megabytes": float64(total) / 1e6})
		}
	}
}
