package apiserver

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	rbaclisters "k8s.io/client-go/listers/rbac/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/nodeactor/nodeactor/supervision"
)

// aggregator fills the rules of ClusterRoles that are defined as the sum of others: admin, edit, view and whatever users define.
type aggregator struct {
	roles  rbaclisters.ClusterRoleLister
	client rbacclient.ClusterRoleInterface
	wake   chan struct{} // holds one signal: something changed since the last pass
}

// aggregateRoles starts to keep aggregated ClusterRoles filled, until Close. Repeated calls do nothing.
func (s *Server) aggregateRoles(context.Context) (err error) {
	s.aggregating.Do(func() {
		informer := s.informers.Rbac().V1().ClusterRoles()
		a := &aggregator{roles: informer.Lister(), client: s.client.RbacV1().ClusterRoles(), wake: make(chan struct{}, 1)}
		_, err = informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { a.changed() },
			UpdateFunc: func(any, any) { a.changed() },
			DeleteFunc: func(any) { a.changed() },
		})
		if err == nil {
			s.spawn("cluster role aggregation", func() { a.run(s.ctx, s) })
		}
	})
	return err
}

func (a *aggregator) changed() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// run makes one pass per change. A failed pass is repeated.
func (a *aggregator) run(ctx context.Context, s *Server) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
		}
		if err := a.pass(ctx); err != nil && !apierrors.IsConflict(err) && ctx.Err() == nil {
			s.log.Warn("cannot aggregate cluster roles", "reason", err)
			if supervision.RealClock().Sleep(ctx, aggregationRetryPause) == nil {
				a.changed()
			}
		}
	}
}

// pass brings every aggregated role up to date with what the informer knows. What is outdated by then brings an event, and another pass.
func (a *aggregator) pass(ctx context.Context) error {
	roles, err := a.roles.List(labels.Everything())
	if err != nil {
		return err
	}
	slices.SortFunc(roles, func(a, b *rbacv1.ClusterRole) int { return strings.Compare(a.Name, b.Name) })
	for _, role := range roles {
		if role.AggregationRule == nil {
			continue
		}
		rules, err := aggregate(role, roles)
		if err != nil {
			return err
		}
		if equality.Semantic.DeepEqual(rules, role.Rules) {
			continue
		}
		filled := role.DeepCopy()
		filled.Rules = rules
		if _, err := a.client.Update(ctx, filled, metav1.UpdateOptions{FieldManager: "clusterrole-aggregation-controller"}); err != nil {
			return fmt.Errorf("cannot fill clusterrole %s: %w", role.Name, err)
		}
	}
	return nil
}

// aggregate returns the sum of the rules of the roles that the role selects, each rule once, in the order of the roles.
func aggregate(role *rbacv1.ClusterRole, sorted []*rbacv1.ClusterRole) ([]rbacv1.PolicyRule, error) {
	rules := []rbacv1.PolicyRule{}
	for i := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			return nil, fmt.Errorf("cannot aggregate clusterrole %s: %w", role.Name, err)
		}
		for _, other := range sorted {
			if other.Name == role.Name || !selector.Matches(labels.Set(other.Labels)) {
				continue
			}
			for _, rule := range other.Rules {
				if !slices.ContainsFunc(rules, func(have rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(have, rule) }) {
					rules = append(rules, rule)
				}
			}
		}
	}
	return rules, nil
}
