package placement

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// What a pod that requests nothing is taken to use when nodes are scored (not when they are filtered), so that such pods spread too.
const (
	assumedMilliCPU = 100
	assumedMemory   = 200 << 20
)

// Demand is a pod compiled for placing: everything that does not depend on the nodes is worked out once.
type Demand struct {
	pod      *v1.Pod
	seed     uint64 // of the tie-break
	priority int32
	requests Amounts
	// scoreCPU and scoreMemory are the requests with the assumed use of a pod that names none.
	scoreCPU, scoreMemory int64
	ports                 []hostPort
	owner                 types.UID

	// selective says that affinity restricts the nodes at all.
	selective bool
	affinity  nodeaffinity.RequiredNodeAffinity
	// pinned are the only node names the required affinity can match; nil when it does not go by name.
	pinned    []string
	preferred *nodeaffinity.PreferredSchedulingTerms

	attract, repel               []term
	preferAttract, preferRepel   []weightedTerm
	hardSpread, softSpread       []spread
	toleratesUnready, toleratesU bool
}

// Compile prepares the pod. Parts that admission would have refused, such as a malformed selector, match nothing.
func (c *Cluster) Compile(pod *v1.Pod) *Demand {
	d := &Demand{
		pod:      pod,
		seed:     seedOf(string(pod.UID)),
		priority: priorityOf(pod),
		requests: requestsOf(pod),
		ports:    portsOf(pod),
		owner:    ownerOf(pod),
	}
	d.scoreCPU, d.scoreMemory = orElse(d.requests.MilliCPU, assumedMilliCPU), orElse(d.requests.Memory, assumedMemory)
	d.compileNodeAffinity(pod.Spec.Affinity)
	d.compilePodAffinity(pod.Spec.Affinity, c.spaces)
	d.compileSpread(pod)
	d.toleratesUnready = tolerates(pod, &v1.Taint{Key: v1.TaintNodeNotReady, Effect: v1.TaintEffectNoSchedule})
	d.toleratesU = tolerates(pod, &v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule})
	return d
}

// Pod is the pod that was compiled.
func (d *Demand) Pod() *v1.Pod { return d.pod }

// Priority orders demands: higher goes first.
func (d *Demand) Priority() int32 { return d.priority }

func orElse(value, otherwise int64) int64 {
	if value == 0 {
		return otherwise
	}
	return value
}

func ownerOf(pod *v1.Pod) types.UID {
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		return ref.UID
	}
	return ""
}

func (d *Demand) compileNodeAffinity(affinity *v1.Affinity) {
	d.affinity = nodeaffinity.GetRequiredNodeAffinity(d.pod)
	d.selective = len(d.pod.Spec.NodeSelector) > 0
	if affinity == nil || affinity.NodeAffinity == nil {
		return
	}
	if required := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		d.selective = true
		d.pinned = pinnedNames(required)
	}
	if terms := affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution; len(terms) > 0 {
		d.preferred, _ = nodeaffinity.NewPreferredSchedulingTerms(terms)
	}
}

// pinnedNames are the node names that the terms allow when every one of them goes by name, as those of a DaemonSet's pods do.
func pinnedNames(required *v1.NodeSelector) []string {
	names := []string{}
	for _, t := range required.NodeSelectorTerms {
		found := false
		for _, field := range t.MatchFields {
			if field.Key == metav1.ObjectNameField && field.Operator == v1.NodeSelectorOpIn {
				names = append(names, field.Values...)
				found = true
			}
		}
		if !found {
			return nil
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Relates tells whether where other pods are placed can decide about this one.
func (d *Demand) Relates() bool {
	return len(d.attract)+len(d.repel)+len(d.hardSpread) > 0
}
