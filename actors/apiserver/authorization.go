package apiserver

import (
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/client-go/informers"
	"k8s.io/kubernetes/pkg/auth/nodeidentifier"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/node"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

// newAuthorizer returns the chain of upstream's default: the masters' group, the Node authorizer, RBAC; nobody else.
func newAuthorizer(factory informers.SharedInformerFactory) (authorizer.Authorizer, authorizer.RuleResolver, error) {
	roles := factory.Rbac().V1()
	rules := rbac.New(
		&rbac.RoleGetter{Lister: roles.Roles().Lister()},
		&rbac.RoleBindingLister{Lister: roles.RoleBindings().Lister()},
		&rbac.ClusterRoleGetter{Lister: roles.ClusterRoles().Lister()},
		&rbac.ClusterRoleBindingLister{Lister: roles.ClusterRoleBindings().Lister()},
	)
	nodes := newNodeAuthorizer(factory)
	masters := authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup)
	all, err := union.New(
		union.NamedAuthorizer{AuthorizerName: "kubernetes.io/system-privileged-group", Authorizer: masters},
		union.NamedAuthorizer{AuthorizerName: "node", Authorizer: nodes},
		union.NamedAuthorizer{AuthorizerName: "rbac", Authorizer: rules},
	)
	return all, union.NewRuleResolvers(nodes, rules), err
}

// newNodeAuthorizer returns the authorizer that lets a kubelet see only what its own pods refer to.
func newNodeAuthorizer(factory informers.SharedInformerFactory) *node.NodeAuthorizer {
	graph := node.NewGraph()
	node.AddGraphEventHandlers(graph,
		factory.Core().V1().Nodes(),
		factory.Core().V1().Pods(),
		factory.Core().V1().PersistentVolumes(),
		factory.Storage().V1().VolumeAttachments(),
		factory.Resource().V1().ResourceSlices(),
		factory.Certificates().V1().PodCertificateRequests(),
	)
	return node.NewAuthorizer(graph, nodeidentifier.NewDefaultNodeIdentifier(), bootstrappolicy.NodeRules())
}
