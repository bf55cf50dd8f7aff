package cache

import (
	"reflect"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// registryRoot is the prefix of every API object in the store.
const registryRoot = "/registry/"

// Object is what every typed object offers.
type Object interface {
	metav1.Object
	runtime.Object
}

// Kind says where objects of one built-in kind are stored and how the API names them. It is comparable.
type Kind struct {
	// Resource is the group, version and plural name.
	Resource schema.GroupVersionResource
	// Name is the kind's name.
	Name string
	// Folder is the store path below the root, without slashes at its ends.
	Folder string
	// Namespaced tells whether keys carry a namespace.
	Namespaced bool
}

// Prefix is the store prefix of all objects of the kind.
func (k Kind) Prefix() string { return registryRoot + k.Folder + "/" }

// Key is the store key of one object; namespace is ignored for cluster-scoped kinds.
func (k Kind) Key(namespace, name string) string {
	if !k.Namespaced {
		return k.Prefix() + name
	}
	return k.Prefix() + namespace + "/" + name
}

// GroupVersionKind names the kind in owner references and events.
func (k Kind) GroupVersionKind() schema.GroupVersionKind {
	return k.Resource.GroupVersion().WithKind(k.Name)
}

// scope of a kind, spelled out so that the table below reads.
const (
	namespaced = true
	cluster    = false
)

// rows is every kind that can be read typed. Folders are upstream's own, which keeps the store readable by its tools.
var rows = []typedKind{
	of[corev1.Pod]("", "v1", "pods", "pods", namespaced),
	of[corev1.Service]("", "v1", "services", "services/specs", namespaced),
	of[corev1.Endpoints]("", "v1", "endpoints", "services/endpoints", namespaced),
	of[corev1.ConfigMap]("", "v1", "configmaps", "configmaps", namespaced),
	of[corev1.Secret]("", "v1", "secrets", "secrets", namespaced),
	of[corev1.ServiceAccount]("", "v1", "serviceaccounts", "serviceaccounts", namespaced),
	of[corev1.Event]("", "v1", "events", "events", namespaced),
	of[corev1.LimitRange]("", "v1", "limitranges", "limitranges", namespaced),
	of[corev1.ResourceQuota]("", "v1", "resourcequotas", "resourcequotas", namespaced),
	of[corev1.ReplicationController]("", "v1", "replicationcontrollers", "controllers", namespaced),
	of[corev1.PodTemplate]("", "v1", "podtemplates", "podtemplates", namespaced),
	of[corev1.PersistentVolumeClaim]("", "v1", "persistentvolumeclaims", "persistentvolumeclaims", namespaced),
	of[corev1.PersistentVolume]("", "v1", "persistentvolumes", "persistentvolumes", cluster),
	of[corev1.Namespace]("", "v1", "namespaces", "namespaces", cluster),
	of[corev1.Node]("", "v1", "nodes", "minions", cluster),
	of[appsv1.Deployment]("apps", "v1", "deployments", "deployments", namespaced),
	of[appsv1.ReplicaSet]("apps", "v1", "replicasets", "replicasets", namespaced),
	of[appsv1.StatefulSet]("apps", "v1", "statefulsets", "statefulsets", namespaced),
	of[appsv1.DaemonSet]("apps", "v1", "daemonsets", "daemonsets", namespaced),
	of[appsv1.ControllerRevision]("apps", "v1", "controllerrevisions", "controllerrevisions", namespaced),
	of[batchv1.Job]("batch", "v1", "jobs", "jobs", namespaced),
	of[batchv1.CronJob]("batch", "v1", "cronjobs", "cronjobs", namespaced),
	of[autoscalingv2.HorizontalPodAutoscaler]("autoscaling", "v2", "horizontalpodautoscalers", "horizontalpodautoscalers", namespaced),
	of[policyv1.PodDisruptionBudget]("policy", "v1", "poddisruptionbudgets", "poddisruptionbudgets", namespaced),
	of[networkingv1.Ingress]("networking.k8s.io", "v1", "ingresses", "ingress", namespaced),
	of[networkingv1.IngressClass]("networking.k8s.io", "v1", "ingressclasses", "ingressclasses", cluster),
	of[networkingv1.NetworkPolicy]("networking.k8s.io", "v1", "networkpolicies", "networkpolicies", namespaced),
	of[networkingv1.ServiceCIDR]("networking.k8s.io", "v1", "servicecidrs", "servicecidrs", cluster),
	of[networkingv1.IPAddress]("networking.k8s.io", "v1", "ipaddresses", "ipaddresses", cluster),
	of[discoveryv1.EndpointSlice]("discovery.k8s.io", "v1", "endpointslices", "endpointslices", namespaced),
	of[rbacv1.Role]("rbac.authorization.k8s.io", "v1", "roles", "roles", namespaced),
	of[rbacv1.RoleBinding]("rbac.authorization.k8s.io", "v1", "rolebindings", "rolebindings", namespaced),
	of[rbacv1.ClusterRole]("rbac.authorization.k8s.io", "v1", "clusterroles", "clusterroles", cluster),
	of[rbacv1.ClusterRoleBinding]("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "clusterrolebindings", cluster),
	of[storagev1.StorageClass]("storage.k8s.io", "v1", "storageclasses", "storageclasses", cluster),
	of[storagev1.CSINode]("storage.k8s.io", "v1", "csinodes", "csinodes", cluster),
	of[storagev1.CSIDriver]("storage.k8s.io", "v1", "csidrivers", "csidrivers", cluster),
	of[storagev1.VolumeAttachment]("storage.k8s.io", "v1", "volumeattachments", "volumeattachments", cluster),
	of[storagev1.CSIStorageCapacity]("storage.k8s.io", "v1", "csistoragecapacities", "csistoragecapacities", namespaced),
	of[nodev1.RuntimeClass]("node.k8s.io", "v1", "runtimeclasses", "runtimeclasses", cluster),
	of[schedulingv1.PriorityClass]("scheduling.k8s.io", "v1", "priorityclasses", "priorityclasses", cluster),
	of[coordinationv1.Lease]("coordination.k8s.io", "v1", "leases", "leases", namespaced),
	of[certificatesv1.CertificateSigningRequest]("certificates.k8s.io", "v1", "certificatesigningrequests", "certificatesigningrequests", cluster),
	of[admissionv1.MutatingWebhookConfiguration]("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "mutatingwebhookconfigurations", cluster),
	of[admissionv1.ValidatingWebhookConfiguration]("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "validatingwebhookconfigurations", cluster),
}

type typedKind struct {
	goType reflect.Type
	kind   Kind
}

func of[T any](group, version, resource, folder string, scoped bool) typedKind {
	t := reflect.TypeFor[*T]()
	gvr := schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	return typedKind{t, Kind{Resource: gvr, Name: t.Elem().Name(), Folder: folder, Namespaced: scoped}}
}

var byType, byFolder, byGroupKind = indexKinds(rows)

func indexKinds(rows []typedKind) (map[reflect.Type]Kind, map[string]Kind, map[schema.GroupKind]Kind) {
	types, folders, names := map[reflect.Type]Kind{}, map[string]Kind{}, map[schema.GroupKind]Kind{}
	for _, r := range rows {
		types[r.goType], folders[r.kind.Folder], names[r.kind.GroupVersionKind().GroupKind()] = r.kind, r.kind, r.kind
	}
	return types, folders, names
}

// KindOf is the kind of a typed object. It panics for a type that is not in the table, which is a mistake of the programmer
// that the first test of the caller shows.
func KindOf[T Object]() Kind {
	t := reflect.TypeFor[T]()
	kind, ok := byType[t]
	if !ok {
		panic("cache: no stored kind for type " + t.String())
	}
	return kind
}

// folderOf cuts the folder out of a store key: one segment for most kinds, two for services and for resources stored under their group.
func folderOf(key string) (string, bool) {
	rest, ok := strings.CutPrefix(key, registryRoot)
	if !ok {
		return "", false
	}
	first, after, ok := strings.Cut(rest, "/")
	if !ok {
		return "", false
	}
	if first != "services" && !strings.Contains(first, ".") {
		return first, true
	}
	second, _, ok := strings.Cut(after, "/")
	return first + "/" + second, ok
}

// Holds tells whether a store key belongs to the kind; the zero Kind holds every key.
func (k Kind) Holds(key string) bool {
	return k == Kind{} || strings.HasPrefix(key, k.Prefix())
}

// IsTyped tells whether a store key belongs to a kind of the table, whose stored version is served.
func IsTyped(key string) bool {
	folder, _ := folderOf(key)
	_, ok := byFolder[folder]
	return ok
}

// KindNamed finds a kind of the table by group and name. All its objects are in the store, so what the store lacks does not exist.
func KindNamed(name schema.GroupKind) (Kind, bool) {
	kind, ok := byGroupKind[name]
	return kind, ok
}
