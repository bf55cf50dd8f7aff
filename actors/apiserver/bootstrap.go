package apiserver

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulingv1 "k8s.io/kubernetes/pkg/apis/scheduling/v1"
)

// systemNamespaces exist in every cluster.
var systemNamespaces = []string{metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease, metav1.NamespaceDefault}

// Bootstrap creates what every cluster has: the system namespaces, the Service `kubernetes` with its endpoints, the system's priority
// classes and upstream's RBAC policy. What exists already is brought up to date only where it lacks something, so a second run writes
// nothing. It may be repeated after an error.
func (s *Server) Bootstrap(ctx context.Context) error {
	steps := []struct {
		what string
		do   func(context.Context) error
	}{
		{"system namespaces", s.ensureNamespaces},
		{"service kubernetes", s.ensureKubernetesService},
		{"priority classes", s.ensurePriorityClasses},
		{"authentication configuration", s.ensureAuthenticationConfig},
		// Last, because it is two hundred writes on a first start, and the node's own parts do not wait for it.
		{"RBAC policy", s.ensurePolicy},
		{"aggregated cluster roles", s.aggregateRoles},
	}
	for _, step := range steps {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("cannot create the %s: %w", step.what, err)
		}
	}
	return nil
}

func (s *Server) ensureNamespaces(ctx context.Context) error {
	namespaces := s.client.CoreV1().Namespaces()
	for _, name := range systemNamespaces {
		_, err := namespaces.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = namespaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

func (s *Server) ensurePriorityClasses(ctx context.Context) error {
	classes := s.client.SchedulingV1().PriorityClasses()
	for _, class := range schedulingv1.SystemPriorityClasses() {
		_, err := classes.Get(ctx, class.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = classes.Create(ctx, class, metav1.CreateOptions{})
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}
