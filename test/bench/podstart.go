package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

const (
	// demoImage is in the archive that is built beside nodeactor.
	demoImage   = "nodeactor.io/demo:v1"
	demoArchive = "demo-image.tar"
	podNS       = "default"
	// podLimit bounds one pod's start and its removal.
	podLimit = 30 * time.Second
)

// timePodStarts creates pods one after another and times each from its creation to the watch event that shows it Running. Pods are
// removed in batches, so that the node's limit is never met.
func (n *own) timePodStarts(ctx context.Context, r *results) error {
	archive := filepath.Join(n.bin, demoArchive)
	if printed, err := exec.CommandContext(ctx, filepath.Join(n.bin, "nodeactor"), "image", "import", archive, "--data-dir", n.dir).CombinedOutput(); err != nil {
		return fmt.Errorf("cannot import %s: %w: %s", archive, err, printed)
	}
	client := clientFor(n.kubeconfig())
	var times []float64
	for i := range n.podStarts {
		took, err := startPod(ctx, client, fmt.Sprintf("start-%03d", i))
		if err != nil {
			return err
		}
		times = append(times, took.Seconds()*1000)
	}
	r.add(n.label(), "pod_start", line{
		"n": len(times), "errors": 0, "p50_ms": percentile(times, 50), "p99_ms": percentile(times, 99), "max_ms": percentile(times, 100),
	})
	return removePods(ctx, client)
}

func startPod(ctx context.Context, client kubernetes.Interface, name string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, podLimit)
	defer cancel()
	pods := client.CoreV1().Pods(podNS)
	w, err := pods.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()})
	if err != nil {
		return 0, err
	}
	defer w.Stop()
	began := time.Now()
	if _, err := pods.Create(ctx, benchPod(name), metav1.CreateOptions{}); err != nil {
		return 0, err
	}
	return awaitRunning(w, name, began)
}

func awaitRunning(w watch.Interface, name string, began time.Time) (time.Duration, error) {
	for event := range w.ResultChan() {
		if pod, ok := event.Object.(*v1.Pod); ok && pod.Status.Phase == v1.PodRunning {
			return time.Since(began), nil
		}
	}
	return 0, fmt.Errorf("pod %s was not Running within %v", name, podLimit)
}

func benchPod(name string) *v1.Pod {
	grace := int64(0)
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "bench-start"}},
		Spec: v1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			Containers:                    []v1.Container{{Name: "demo", Image: demoImage, ImagePullPolicy: v1.PullNever}},
		},
	}
}

func removePods(ctx context.Context, client kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, 4*podLimit)
	defer cancel()
	pods := client.CoreV1().Pods(podNS)
	selector := metav1.ListOptions{LabelSelector: "app=bench-start"}
	if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{}, selector); err != nil {
		return err
	}
	for {
		left, err := pods.List(ctx, selector)
		if err != nil {
			return err
		}
		if len(left.Items) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d pods were not removed: %w", len(left.Items), ctx.Err())
		case <-time.After(20 * pollInterval):
		}
	}
}
