package apiserver

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/nodeactor/nodeactor/actors/apiserver/supervisionapi"
)

// treeReader is the role that sees the supervision tree.
const treeReader = "nodeactor:supervision-reader"

// treeRoles lets view, and with it edit and admin, see the tree: it holds names, states and the texts of errors, no content of any object and
// no Secret. The kinds are cluster-scoped, so a role binding within one namespace gives nobody this.
func treeRoles() []rbacv1.ClusterRole {
	return []rbacv1.ClusterRole{{
		ObjectMeta: treePolicyMeta(treeReader, map[string]string{"rbac.authorization.k8s.io/aggregate-to-view": "true"}),
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{supervisionapi.GroupName},
			Resources: []string{supervisionapi.Actors, supervisionapi.FaultPolicies},
			Verbs:     []string{"get", "list", "watch"},
		}},
	}}
}

// treeBindings lets those see the tree who may scrape metrics, which tell the same.
func treeBindings() []rbacv1.ClusterRoleBinding {
	return []rbacv1.ClusterRoleBinding{{
		ObjectMeta: treePolicyMeta(treeReader, nil),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: treeReader},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: user.MonitoringGroup}},
	}}
}

func treePolicyMeta(name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"}}
}
