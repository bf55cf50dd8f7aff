package node

import "k8s.io/apimachinery/pkg/runtime/schema"

// withoutEffect names what can be stored while nothing in this build acts upon it; whoever
// writes one is told so in a warning.
func withoutEffect() map[schema.GroupResource]string {
	none := map[string][]string{
		"":                  {"resourcequotas", "persistentvolumeclaims", "persistentvolumes", "replicationcontrollers"},
		"apps":              {"statefulsets", "daemonsets"},
		"batch":             {"jobs", "cronjobs"},
		"autoscaling":       {"horizontalpodautoscalers"},
		"policy":            {"poddisruptionbudgets"},
		"networking.k8s.io": {"ingresses", "networkpolicies"},
	}
	out := map[schema.GroupResource]string{}
	for group, resources := range none {
		for _, r := range resources {
			out[schema.GroupResource{Group: group, Resource: r}] = "no controller of this version of nodeactor acts upon it yet"
		}
	}
	out[schema.GroupResource{Resource: "services"}] = "this version of nodeactor keeps their endpoints, but routes no cluster IP, node port or load balancer yet, and has no cluster DNS: reach pods by their own addresses"
	return out
}
