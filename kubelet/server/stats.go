package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/nodeactor/nodeactor/kubelet/pod/core"
	"github.com/nodeactor/nodeactor/kubelet/runtime"
)

// summary shows what pods and containers use.
func (s *server) summary(w http.ResponseWriter, r *http.Request) {
	out := stats.Summary{Node: stats.NodeStats{NodeName: s.Node, StartTime: metav1.NewTime(s.Now())}, Pods: []stats.PodStats{}}
	for _, p := range s.Pods.List() {
		if p.Status.Phase == v1.PodRunning {
			out.Pods = append(out.Pods, s.podStats(r, p))
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) // the client is gone if this fails
}

func (s *server) podStats(r *http.Request, p *v1.Pod) stats.PodStats {
	out := stats.PodStats{PodRef: stats.PodReference{Name: p.Name, Namespace: p.Namespace, UID: string(p.UID)}}
	if p.Status.StartTime != nil {
		out.StartTime = *p.Status.StartTime
	}
	if u, err := s.Runtime.PodStats(r.Context(), string(p.UID)); err == nil {
		out.CPU, out.Memory = usage(u)
	}
	for _, list := range [][]v1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, c := range list {
			if c.State.Running == nil {
				continue
			}
			u, err := s.Runtime.Stats(r.Context(), strings.TrimPrefix(c.ContainerID, core.ContainerIDPrefix))
			if err != nil {
				continue
			}
			cs := stats.ContainerStats{Name: c.Name, StartTime: c.State.Running.StartedAt}
			cs.CPU, cs.Memory = usage(u)
			out.Containers = append(out.Containers, cs)
		}
	}
	return out
}

func usage(u runtime.Stats) (*stats.CPUStats, *stats.MemoryStats) {
	at := metav1.NewTime(u.Time)
	m := &stats.MemoryStats{Time: at, UsageBytes: &u.MemoryBytes, WorkingSetBytes: &u.WorkingSetBytes, RSSBytes: &u.RSSBytes,
		PageFaults: &u.PageFaults, MajorPageFaults: &u.MajorPageFaults}
	if u.MemoryLimit > u.WorkingSetBytes {
		free := u.MemoryLimit - u.WorkingSetBytes
		m.AvailableBytes = &free
	}
	return &stats.CPUStats{Time: at, UsageCoreNanoSeconds: &u.CPUNanos}, m
}

// metrics shows the kubelet's own numbers, and those of the process.
func (s *server) metrics(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	pods, containers := 0, 0
	for _, p := range s.Pods.List() {
		if p.Status.Phase == v1.PodRunning {
			pods++
		}
		for _, c := range p.Status.ContainerStatuses {
			if c.State.Running != nil {
				containers++
			}
		}
	}
	fmt.Fprintf(w, "# HELP kubelet_running_pods Number of pods that are running.\n# TYPE kubelet_running_pods gauge\nkubelet_running_pods %d\n", pods)
	fmt.Fprintf(w, "# HELP kubelet_running_containers Number of containers that are running.\n# TYPE kubelet_running_containers gauge\nkubelet_running_containers{container_state=\"running\"} %d\n", containers)
	fmt.Fprintf(w, "# HELP kubelet_node_name The node's name.\n# TYPE kubelet_node_name gauge\nkubelet_node_name{node=%q} 1\n", s.Node)
	if s.Metrics != nil {
		s.Metrics.ServeHTTP(w, r)
	}
}

// resourceMetrics shows CPU and memory the way the metrics server reads them.
func (s *server) resourceMetrics(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	fmt.Fprint(w, "# HELP container_cpu_usage_seconds_total Cumulative cpu time consumed by the container in core-seconds\n# TYPE container_cpu_usage_seconds_total counter\n")
	var memory strings.Builder
	for _, p := range s.Pods.List() {
		if p.Status.Phase != v1.PodRunning {
			continue
		}
		for _, c := range s.podStats(r, p).Containers {
			labels := fmt.Sprintf("{container=%q,namespace=%q,pod=%q}", c.Name, p.Namespace, p.Name)
			fmt.Fprintf(w, "container_cpu_usage_seconds_total%s %g %d\n", labels, float64(*c.CPU.UsageCoreNanoSeconds)/1e9, c.CPU.Time.UnixMilli())
			fmt.Fprintf(&memory, "container_memory_working_set_bytes%s %d %d\n", labels, *c.Memory.WorkingSetBytes, c.Memory.Time.UnixMilli())
		}
	}
	fmt.Fprint(w, "# HELP container_memory_working_set_bytes Current working set of the container in bytes\n# TYPE container_memory_working_set_bytes gauge\n", memory.String())
}
