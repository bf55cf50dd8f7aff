package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

var errEnded = errors.New("the node ended before it was ready")

// awaitBoot times the milestones of a node's start: the API ready, the node Ready, and a pod admissible.
func (n *own) awaitBoot(ctx context.Context, began time.Time) (line, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	boot := line{}
	var client kubernetes.Interface
	steps := []struct {
		name string
		done func() bool
	}{
		{"kubeconfig_s", func() bool { client = clientFor(n.kubeconfig()); return client != nil }},
		{"api_s", func() bool {
			_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
			return err == nil
		}},
		{"node_ready_s", func() bool { return nodeReady(ctx, client) }},
		{"usable_s", func() bool {
			_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
			return err == nil
		}},
	}
	for _, step := range steps {
		if err := n.await(ctx, step.done); err != nil {
			return nil, fmt.Errorf("cannot wait for %s: %w", step.name, err)
		}
		boot[step.name] = time.Since(began).Seconds()
	}
	return boot, nil
}

func (n *own) await(ctx context.Context, done func() bool) error {
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-n.exited:
			n.exited <- err
			return errors.Join(errEnded, err)
		case <-time.After(pollInterval):
		}
	}
	return nil
}

func clientFor(kubeconfig string) kubernetes.Interface {
	if _, err := os.Stat(kubeconfig); err != nil {
		return nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil
	}
	return client
}

func nodeReady(ctx context.Context, client kubernetes.Interface) bool {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false
	}
	for _, node := range nodes.Items {
		for _, c := range node.Status.Conditions {
			if c.Type == v1.NodeReady && c.Status == v1.ConditionTrue {
				return true
			}
		}
	}
	return false
}
