package placement

import (
	"fmt"
	"slices"
	"strings"
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
