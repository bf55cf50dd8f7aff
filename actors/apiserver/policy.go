package apiserver

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/component-helpers/auth/rbac/reconciliation"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"github.com/nodeactor/nodeactor/supervision"
)

// policyStep brings one object of the policy up to date.
type policyStep struct {
	what   string
	exists bool
	create func(context.Context) error
	update func() error
}

// ensurePolicy creates or completes upstream's RBAC policy, and who may see the supervision tree. Existing roles only gain what they lack, and those with the annotation
// rbac.authorization.kubernetes.io/autoupdate=false are left alone. Listing first spares a question for every object on a first start.
func (s *Server) ensurePolicy(ctx context.Context) error {
	var steps []policyStep
	for _, collect := range []func(context.Context) ([]policyStep, error){s.clusterRoleSteps, s.clusterBindingSteps, s.roleSteps, s.bindingSteps} {
		more, err := collect(ctx)
		if err != nil {
			return err
		}
		steps = append(steps, more...)
	}
	return runSteps(ctx, steps)
}

// runSteps runs the steps, some at once: they do not depend on each other, and writes that wait for the disk together wait once.
func runSteps(ctx context.Context, steps []policyStep) error {
	var next atomic.Int64
	workers := supervision.NewGroup(ctx, "RBAC policy", nil)
	for range policyWorkers {
		workers.Go("steps", func(ctx context.Context) error {
			for i := next.Add(1) - 1; i < int64(len(steps)); i = next.Add(1) - 1 {
				if err := steps[i].run(ctx); err != nil {
					return fmt.Errorf("cannot reconcile %s: %w", steps[i].what, err)
				}
			}
			return nil
		})
	}
	return workers.Wait()
}

func (p policyStep) run(ctx context.Context) error {
	if !p.exists {
		if err := p.create(ctx); !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, p.update)
}

func (s *Server) clusterRoleSteps(ctx context.Context) (steps []policyStep, err error) {
	client := s.client.RbacV1().ClusterRoles()
	have, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	known := namesOf(have.Items, func(r *rbacv1.ClusterRole) string { return r.Name })
	for _, role := range slices.Concat(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles(), treeRoles()) {
		steps = append(steps, policyStep{
			what:   "clusterrole " + role.Name,
			exists: known[role.Name],
			create: func(ctx context.Context) error {
				_, err := client.Create(ctx, &role, metav1.CreateOptions{})
				return err
			},
			update: func() error {
				options := reconciliation.ReconcileRoleOptions{
					Role:    reconciliation.ClusterRoleRuleOwner{ClusterRole: &role},
					Client:  reconciliation.ClusterRoleModifier{Client: client},
					Confirm: true,
				}
				_, err := options.Run()
				return err
			},
		})
	}
	return steps, nil
}

func (s *Server) clusterBindingSteps(ctx context.Context) (steps []policyStep, err error) {
	client := s.client.RbacV1().ClusterRoleBindings()
	have, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	known := namesOf(have.Items, func(b *rbacv1.ClusterRoleBinding) string { return b.Name })
	for _, binding := range slices.Concat(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings(), treeBindings()) {
		steps = append(steps, policyStep{
			what:   "clusterrolebinding " + binding.Name,
			exists: known[binding.Name],
			create: func(ctx context.Context) error {
				_, err := client.Create(ctx, &binding, metav1.CreateOptions{})
				return err
			},
			update: func() error {
				options := reconciliation.ReconcileRoleBindingOptions{
					RoleBinding: reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: &binding},
					Client:      reconciliation.ClusterRoleBindingClientAdapter{Client: client},
					Confirm:     true,
				}
				_, err := options.Run()
				return err
			},
		})
	}
	return steps, nil
}

func (s *Server) roleSteps(ctx context.Context) (steps []policyStep, err error) {
	client := s.client.RbacV1()
	have, err := client.Roles(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	known := namesOf(have.Items, func(r *rbacv1.Role) string { return r.Namespace + "/" + r.Name })
	for namespace, roles := range bootstrappolicy.NamespaceRoles() {
		for _, role := range roles {
			steps = append(steps, policyStep{
				what:   "role " + namespace + "/" + role.Name,
				exists: known[namespace+"/"+role.Name],
				create: func(ctx context.Context) error {
					_, err := client.Roles(namespace).Create(ctx, &role, metav1.CreateOptions{})
					return err
				},
				update: func() error {
					options := reconciliation.ReconcileRoleOptions{
						Role:    reconciliation.RoleRuleOwner{Role: &role},
						Client:  reconciliation.RoleModifier{Client: client, NamespaceClient: s.client.CoreV1().Namespaces()},
						Confirm: true,
					}
					_, err := options.Run()
					return err
				},
			})
		}
	}
	return steps, nil
}

func (s *Server) bindingSteps(ctx context.Context) (steps []policyStep, err error) {
	client := s.client.RbacV1()
	have, err := client.RoleBindings(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	known := namesOf(have.Items, func(b *rbacv1.RoleBinding) string { return b.Namespace + "/" + b.Name })
	for namespace, bindings := range bootstrappolicy.NamespaceRoleBindings() {
		for _, binding := range bindings {
			steps = append(steps, policyStep{
				what:   "rolebinding " + namespace + "/" + binding.Name,
				exists: known[namespace+"/"+binding.Name],
				create: func(ctx context.Context) error {
					_, err := client.RoleBindings(namespace).Create(ctx, &binding, metav1.CreateOptions{})
					return err
				},
				update: func() error {
					options := reconciliation.ReconcileRoleBindingOptions{
						RoleBinding: reconciliation.RoleBindingAdapter{RoleBinding: &binding},
						Client:      reconciliation.RoleBindingClientAdapter{Client: client, NamespaceClient: s.client.CoreV1().Namespaces()},
						Confirm:     true,
					}
					_, err := options.Run()
					return err
				},
			})
		}
	}
	return steps, nil
}

// namesOf returns the set of names of the items.
func namesOf[T any](items []T, name func(*T) string) map[string]bool {
	names := make(map[string]bool, len(items))
	for i := range items {
		names[name(&items[i])] = true
	}
	return names
}
