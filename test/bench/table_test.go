package main

import (
	"io"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	r := &results{out: io.Discard}
	for _, v := range []float64{300, 400, 350} {
		r.add("upstream", "create_seq", line{"per_s": v, "n": 1000.0, "cpu_s": map[string]any{"total": 1.1}})
		r.add("nodeactor", "create_seq", line{"per_s": 3 * v, "n": 1000.0, "cpu_s": map[string]any{"total": 0.9}})
	}
	r.add("nodeactor", "create_seq", line{"per_s": 1e9, "errors": 3})
	r.add("nodeactor", "idle", line{"write_bytes_per_s": 0.0, "cpu_percent": 2.0})
	got := r.table()
	for _, want := range []string{
		"| create ConfigMaps, 1 client | per s | 350 | 1050 | 3 | ≥ 2 × | reached |",
		"| server CPU per create | ms | 1.1 | 0.9 | 0.818 | ≤ 0.5 × | **short** |",
		"| idle disk writes | B/s | – | 0 | – | ≤ 500 | beyond |",
		"| idle CPU | % of a core | – | 2 | – | ≤ 1 | **short** |",
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("missing %q in\n%s", want, got)
		}
	}
}

func TestPercentileAndMedian(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	for p, want := range map[int]float64{1: 1, 50: 3, 99: 5, 100: 5} {
		if got := percentile(values, p); got != want {
			t.Errorf("percentile %d is %v, want %v", p, got, want)
		}
	}
	if got := median([]float64{4, 1, 3, 2}); got != 2.5 {
		t.Errorf("median is %v", got)
	}
}

func TestParseProcesses(t *testing.T) {
	list, err := parseProcesses("etcd=12,kube-apiserver=13")
	if err != nil || len(list) != 2 || kbenchArg(list) != "etcd=12,kube-apiserver=13" {
		t.Errorf("got %v, %v", list, err)
	}
	if _, err := parseProcesses("etcd"); err == nil {
		t.Error("a process without a pid is accepted")
	}
}
