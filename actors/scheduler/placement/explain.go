package placement

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// explain words why none of the nodes takes the pod. Every node is counted under one reason; reasons are sorted as text, as upstream
// sorts them.
func explain(nodes int, refused map[string]int) string {
	reasons := make([]string, 0, len(refused))
	for reason, count := range refused {
		reasons = append(reasons, fmt.Sprintf("%d %s", count, reason))
	}
	slices.Sort(reasons)
	if len(reasons) == 0 {
		return fmt.Sprintf("0/%d nodes are available.", nodes)
	}
	return fmt.Sprintf("0/%d nodes are available: %s.", nodes, strings.Join(reasons, ", "))
}

// Why making room would not help, in upstream's words.
const (
	preemptionUnhelpful = "Preemption is not helpful for scheduling"
	preemptionNoVictims = "No preemption victims found for incoming pod"
	preemptionNever     = "preemption: not eligible due to preemptionPolicy=Never."
)

// unresolvable are the refusals that no eviction of pods could turn.
var unresolvable = map[string]bool{
	reasonNotReady: true, reasonUnschedulable: true, reasonName: true, reasonSelector: true, reasonTaint: true,
	reasonSpreadLabel: true, reasonAffinity: true,
}

// explainPreemption words why pods of lower priority could not make room either.
func explainPreemption(d *Demand, nodes int, refused map[string]int) string {
	if d.pod.Spec.PreemptionPolicy != nil && *d.pod.Spec.PreemptionPolicy == v1.PreemptNever {
		return preemptionNever
	}
	reasons := map[string]int{}
	for reason, count := range refused {
		if unresolvable[reason] {
			reasons[preemptionUnhelpful] += count
		} else {
			reasons[preemptionNoVictims] += count
		}
	}
	return "preemption: " + explain(nodes, reasons)
}
