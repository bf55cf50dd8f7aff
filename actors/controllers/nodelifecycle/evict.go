package nodelifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// evictions lists the pods that do not tolerate a node's evicting taints any more, and how long until the next one does not.
func evictions(o observed, taints []corev1.Taint) (evict []*corev1.Pod, wait time.Duration) {
	var evicting []corev1.Taint
	for _, taint := range taints {
		if taint.Effect == corev1.TaintEffectNoExecute {
			evicting = append(evicting, taint)
		}
	}
	if len(evicting) == 0 {
		return nil, 0
	}
	for _, pod := range o.pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		stays, until := tolerates(pod, evicting)
		left := until.Sub(o.now)
		switch {
		case !stays || !until.IsZero() && left <= 0:
			evict = append(evict, pod)
		case !until.IsZero() && (wait == 0 || left < wait):
			wait = left
		}
	}
	return evict, wait
}

// tolerates tells whether a pod tolerates all evicting taints, and until when; zero for ever.
func tolerates(pod *corev1.Pod, evicting []corev1.Taint) (stays bool, until time.Time) {
	for _, taint := range evicting {
		tolerated := false
		for i := range pod.Spec.Tolerations {
			toleration := &pod.Spec.Tolerations[i]
			if !toleration.ToleratesTaint(klog.Background(), &taint, true) {
				continue
			}
			tolerated = true
			if toleration.TolerationSeconds == nil {
				continue
			}
			end := taint.TimeAdded.Add(time.Duration(max(0, *toleration.TolerationSeconds)) * time.Second)
			if until.IsZero() || end.Before(until) {
				until = end
			}
		}
		if !tolerated {
			return false, time.Time{}
		}
	}
	return true, until
}
