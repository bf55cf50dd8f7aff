package main

import (
	"fmt"
	"strings"
)

// goal says what nodeactor has to reach in a measure.
type goal struct {
	kind         goalKind
	must, beyond float64
}

type goalKind int

const (
	// none: the measure is shown for information.
	none goalKind = iota
	// atMost and atLeast compare nodeactor's own value.
	atMost
	atLeast
	// ratioAtMost and ratioAtLeast compare nodeactor's value with upstream's of the same run.
	ratioAtMost
	ratioAtLeast
)

// row is one line of the table.
type row struct {
	name, unit, measure string
	field               func(line) (float64, bool)
	goal                goal
}

func key(name string) func(line) (float64, bool) {
	return func(l line) (float64, bool) { return number(l[name]) }
}

// cpuPerCall is the server CPU of all processes in milliseconds per call.
func cpuPerCall(l line) (float64, bool) {
	cpu, _ := l["cpu_s"].(map[string]any)
	total, ok := number(cpu["total"])
	n, _ := number(l["n"])
	return 1000 * total / n, ok && n > 0
}

// cpuTotal is the server CPU of all processes in seconds.
func cpuTotal(l line) (float64, bool) {
	cpu, _ := l["cpu_s"].(map[string]any)
	return number(cpu["total"])
}

// bootedAndReady is when a pod could be admitted and, where there is a node, run.
func bootedAndReady(l line) (float64, bool) {
	usable, ok := number(l["usable_s"])
	node, _ := number(l["node_ready_s"])
	return max(usable, node), ok
}

var rows = []row{
	{"cold boot: API ready", "s", "boot", key("api_s"), goal{}},
	{"cold boot: pods admissible, node Ready", "s", "boot", bootedAndReady, goal{atMost, 1.0, 0.4}},
	{"RSS idle", "MiB", "rss_idle", key("rss_mib"), goal{atMost, 160, 100}},
	{"idle CPU", "% of a core", "idle", key("cpu_percent"), goal{atMost, 1, 0.2}},
	{"idle disk writes", "B/s", "idle", key("write_bytes_per_s"), goal{atMost, 500, 0}},
	{"create ConfigMaps, 1 client", "per s", "create_seq", key("per_s"), goal{ratioAtLeast, 2, 4}},
	{"create ConfigMaps, 16 clients", "per s", "create_conc", key("per_s"), goal{ratioAtLeast, 2, 4}},
	{"server CPU per create", "ms", "create_seq", cpuPerCall, goal{ratioAtMost, 0.5, 0.25}},
	{"update, 1 client, p50", "ms", "update_seq", key("p50_ms"), goal{}},
	{"delete, 1 client, p50", "ms", "delete_seq", key("p50_ms"), goal{}},
	{"get, 1 client, p50", "ms", "get_seq", key("p50_ms"), goal{ratioAtMost, 0.5, 0.25}},
	{"list 1,000, decoded, p50", "ms", "list", key("p50_ms"), goal{}},
	{"server CPU per get", "ms", "get_seq", cpuPerCall, goal{}},
	{"list 1,000, not decoded, p50", "ms", "list_raw", key("p50_ms"), goal{ratioAtMost, 0.4, 0.2}},
	{"server CPU per list", "ms", "list_raw", cpuPerCall, goal{}},
	{"watch, create to event, p50", "ms", "watch", key("p50_ms"), goal{ratioAtMost, 0.5, 0.25}},
	{"watch, 100 watchers, last event, p50", "ms", "watch_fanout", key("p50_ms"), goal{}},
	{"500-pod Deployment, 20 nodes, all bound", "s", "deploy", key("bound_s"), goal{atMost, 0.8, 0.3}},
	{"the same, server CPU", "s", "deploy", cpuTotal, goal{}},
	{"RSS after the load", "MiB", "rss_after", key("rss_mib"), goal{atMost, 300, 200}},
	{"pod start, p50", "ms", "pod_start", key("p50_ms"), goal{atMost, 150, 150}},
	{"pod start, p99", "ms", "pod_start", key("p99_ms"), goal{atMost, 500, 300}},
	{"a controller panics 100/s: get, p99 beside calm", "×", "blast_get", key("p99_ratio"), goal{atMost, 1.25, 1.1}},
	{"the same: create, p99", "×", "blast_create", key("p99_ratio"), goal{atMost, 1.25, 1.1}},
	{"the same: list 100, p99", "×", "blast_list", key("p99_ratio"), goal{atMost, 1.25, 1.1}},
	{"the same: panics borne", "per s", "blast_get", key("panics_per_s"), goal{}},
	{"10,000 pods on 5,000 nodes", "per s", "large_deploy", key("per_s"), goal{atLeast, 1500, 4000}},
	{"create many ConfigMaps, 16 clients", "per s", "many", key("per_s"), goal{}},
	{"the same, server CPU per create", "ms", "many", cpuPerCall, goal{}},
	{"RSS with many ConfigMaps", "MiB", "many", key("rss_mib"), goal{}},
	{"list all of them, not decoded", "s", "many_list", key("seconds"), goal{}},
	{"the same, largest RSS", "MiB", "many_list", key("peak_mib"), goal{}},
	{"list all of them in pages of 500", "s", "many_pages", key("seconds"), goal{}},
	{"restart with them: kill to first list of all", "s", "many_restart", key("seconds"), goal{}},
	{"RSS after that", "MiB", "many_restart", key("rss_mib"), goal{}},
	{"operators: first full pass of many manifests", "s", "operators_first_pass", key("seconds"), goal{}},
	{"operators: CPU of that", "s", "operators_first_pass", cpuTotal, goal{}},
	{"operators: CPU with them at rest", "% of a core", "operators_rest", key("cpu_percent"), goal{}},
	{"operators: memory per manifest beyond the stored object", "bytes", "operators_memory", key("bytes"), goal{atMost, 4096, 1024}},
	{"operators: stored change to reconcile, p99", "ms", "operators_latency", key("p99_ms"), goal{atMost, 20, 5}},
	{"operators: the same from the call that changes, p99", "ms", "operators_latency", key("call_p99_ms"), goal{}},
	{"operators: passes of 50 ms, 32 at a time, one process", "per s", "operators_rate_1", key("per_s"), goal{}},
	{"operators: the same, three processes on one store", "per s", "operators_rate_3", key("per_s"), goal{}},
	{"stripped programs", "MB", "size", key("megabytes"), goal{atMost, 130, 100}},
}

// table prints medians of all rounds, and what they say about the goals.
func (r *results) table() string {
	var b strings.Builder
	b.WriteString("| measure | unit | upstream | nodeactor | ratio | must reach | verdict |\n|---|---|---|---|---|---|---|\n")
	for _, row := range rows {
		upstream, own := r.values("upstream", row.measure, row.field), r.values("nodeactor", row.measure, row.field)
		if len(upstream)+len(own) == 0 {
			continue
		}
		ratio, verdict := "–", "–"
		if len(upstream) > 0 && len(own) > 0 && median(upstream) > 0 {
			ratio = short(median(own) / median(upstream))
		}
		if len(own) > 0 {
			verdict = row.goal.verdict(median(own), upstream)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", row.name, row.unit, shown(upstream), shown(own), ratio, row.goal, verdict)
	}
	return b.String()
}

// verdict judges nodeactor's median; upstream may be empty.
func (g goal) verdict(own float64, upstream []float64) string {
	value := own
	if g.kind == ratioAtMost || g.kind == ratioAtLeast {
		if len(upstream) == 0 || median(upstream) == 0 {
			return "–"
		}
		value = own / median(upstream)
	}
	switch {
	case g.kind == none:
		return "–"
	case g.meets(value, g.beyond) && g.beyond != g.must:
		return "beyond"
	case g.meets(value, g.must):
		return "reached"
	}
	return "**short**"
}

func (g goal) meets(value, limit float64) bool {
	if g.kind == atMost || g.kind == ratioAtMost {
		return value <= limit
	}
	return value >= limit
}

// String is the goal as the table shows it.
func (g goal) String() string {
	switch g.kind {
	case atMost:
		return "≤ " + short(g.must)
	case atLeast:
		return "≥ " + short(g.must)
	case ratioAtMost:
		return "≤ " + short(g.must) + " ×"
	case ratioAtLeast:
		return "≥ " + short(g.must) + " ×"
	}
	return "–"
}

func shown(values []float64) string {
	if len(values) == 0 {
		return "–"
	}
	return short(median(values))
}

// short keeps about three digits.
func short(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", v), "0"), ".")
}
