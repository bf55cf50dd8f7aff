package apiserver

import (
	"net/http"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"
	kubeletclient "k8s.io/kubernetes/pkg/kubelet/client"
	"k8s.io/kubernetes/pkg/registry/core/componentstatus"
	configmapstore "k8s.io/kubernetes/pkg/registry/core/configmap/storage"
	endpointsstore "k8s.io/kubernetes/pkg/registry/core/endpoint/storage"
	eventstore "k8s.io/kubernetes/pkg/registry/core/event/storage"
	limitrangestore "k8s.io/kubernetes/pkg/registry/core/limitrange/storage"
	namespacestore "k8s.io/kubernetes/pkg/registry/core/namespace/storage"
	nodestore "k8s.io/kubernetes/pkg/registry/core/node/storage"
	pvstore "k8s.io/kubernetes/pkg/registry/core/persistentvolume/storage"
	pvcstore "k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim/storage"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"
	podtemplatestore "k8s.io/kubernetes/pkg/registry/core/podtemplate/storage"
	controllerstore "k8s.io/kubernetes/pkg/registry/core/replicationcontroller/storage"
	resourcequotastore "k8s.io/kubernetes/pkg/registry/core/resourcequota/storage"
	secretstore "k8s.io/kubernetes/pkg/registry/core/secret/storage"
	servicestore "k8s.io/kubernetes/pkg/registry/core/service/storage"
	serviceaccountstore "k8s.io/kubernetes/pkg/registry/core/serviceaccount/storage"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

// core assembles the storages of the group with the empty name.
type core struct {
	options    generic.RESTOptionsGetter
	authorizer authorizer.Authorizer
	tokens     serviceaccount.TokenGenerator
	client     kubernetes.Interface
	allocators *serviceAllocators
	kubelets   http.RoundTripper // with the API server's own certificate
	pods       http.RoundTripper // to addresses of pods, without credentials

	storage map[string]rest.Storage
	podREST podstore.PodStorage
	nodes   *nodestore.NodeStorage
	secrets *secretstore.REST
}

// group returns the assembled group.
func (c *core) group() (*genericapiserver.APIGroupInfo, error) {
	c.storage = map[string]rest.Storage{}
	// The order matters: later steps use what earlier ones left in c.
	for _, add := range []func() error{c.addPlain, c.addNamespaces, c.addVolumes, c.addNodes, c.addPods, c.addControllers, c.addServices, c.addServiceAccounts} {
		if err := add(); err != nil {
			return nil, err
		}
	}
	info := genericapiserver.NewDefaultAPIGroupInfo(api.GroupName, legacyscheme.Scheme, legacyscheme.ParameterCodec, legacyscheme.Codecs)
	info.OptionsExternalVersion = nil
	info.VersionedResourcesStorageMap["v1"] = c.storage
	return &info, nil
}

// addPlain adds the resources without subresources.
func (c *core) addPlain() error {
	events, err := eventstore.NewREST(c.options, uint64(eventLife.Seconds()))
	if err != nil {
		return err
	}
	configMaps, err := configmapstore.NewREST(c.options)
	if err != nil {
		return err
	}
	if c.secrets, err = secretstore.NewREST(c.options); err != nil {
		return err
	}
	podTemplates, err := podtemplatestore.NewREST(c.options)
	if err != nil {
		return err
	}
	limitRanges, err := limitrangestore.NewREST(c.options)
	if err != nil {
		return err
	}
	endpoints, err := endpointsstore.NewREST(c.options)
	if err != nil {
		return err
	}
	c.storage["events"], c.storage["configmaps"], c.storage["secrets"] = events, configMaps, c.secrets
	c.storage["podtemplates"], c.storage["limitranges"], c.storage["endpoints"] = podTemplates, limitRanges, endpoints
	c.storage["componentstatuses"] = componentstatus.NewStorage(func() map[string]componentstatus.Server { return nil })
	return nil
}

func (c *core) addNamespaces() error {
	namespaces, status, finalize, err := namespacestore.NewREST(c.options)
	if err != nil {
		return err
	}
	quotas, quotaStatus, err := resourcequotastore.NewREST(c.options)
	if err != nil {
		return err
	}
	c.storage["namespaces"], c.storage["namespaces/status"], c.storage["namespaces/finalize"] = namespaces, status, finalize
	c.storage["resourcequotas"], c.storage["resourcequotas/status"] = quotas, quotaStatus
	return nil
}

func (c *core) addVolumes() error {
	volumes, volumeStatus, err := pvstore.NewREST(c.options)
	if err != nil {
		return err
	}
	claims, claimStatus, err := pvcstore.NewREST(c.options)
	if err != nil {
		return err
	}
	c.storage["persistentvolumes"], c.storage["persistentvolumes/status"] = volumes, volumeStatus
	c.storage["persistentvolumeclaims"], c.storage["persistentvolumeclaims/status"] = claims, claimStatus
	return nil
}

func (c *core) addNodes() (err error) {
	// The client configuration stays empty: it would read the certificate from files and keep goroutines to watch them. The connections made
	// from it are replaced by our own.
	if c.nodes, err = nodestore.NewStorage(c.options, kubeletclient.KubeletClientConfig{Port: defaultKubeletPort}, c.pods); err != nil {
		return err
	}
	c.nodes.KubeletConnectionInfo = &kubelets{nodes: c.nodes.Node, transport: c.kubelets}
	c.nodes.Proxy.Connection = c.nodes.KubeletConnectionInfo
	c.storage["nodes"], c.storage["nodes/status"], c.storage["nodes/proxy"] = c.nodes.Node, c.nodes.Status, c.nodes.Proxy
	return nil
}

func (c *core) addPods() (err error) {
	c.podREST, err = podstore.NewStorage(c.options, c.nodes.KubeletConnectionInfo, c.pods, c.client.PolicyV1(), c.authorizer)
	if err != nil {
		return err
	}
	p := c.podREST
	for subresource, storage := range map[string]rest.Storage{
		"":                     p.Pod,
		"/attach":              p.Attach,
		"/binding":             p.Binding,
		"/ephemeralcontainers": p.EphemeralContainers,
		"/eviction":            p.Eviction,
		"/exec":                p.Exec,
		"/log":                 p.Log,
		"/portforward":         p.PortForward,
		"/proxy":               p.Proxy,
		"/resize":              p.Resize,
		"/status":              p.Status,
	} {
		c.storage["pods"+subresource] = storage
	}
	c.storage["bindings"] = p.LegacyBinding
	return nil
}

func (c *core) addControllers() error {
	controllers, err := controllerstore.NewStorage(c.options)
	if err != nil {
		return err
	}
	c.storage["replicationcontrollers"] = controllers.Controller
	c.storage["replicationcontrollers/status"] = controllers.Status
	c.storage["replicationcontrollers/scale"] = controllers.Scale
	return nil
}

func (c *core) addServices() error {
	services, status, proxy, err := servicestore.NewREST(c.options, c.allocators.family, c.allocators.addresses, c.allocators.ports, clusterServices{c.client}, c.podREST.Pod, c.pods)
	if err != nil {
		return err
	}
	c.storage["services"], c.storage["services/status"], c.storage["services/proxy"] = services, status, proxy
	return nil
}

func (c *core) addServiceAccounts() error {
	webhooks := c.client.AdmissionregistrationV1()
	accounts, err := serviceaccountstore.NewREST(c.options, c.tokens, audiences, c.authorizer, tokenMaxLife, c.podREST.Pod.Store, c.secrets.Store, c.nodes.Node.Store,
		webhooks.ValidatingWebhookConfigurations(), webhooks.MutatingWebhookConfigurations(), false, 0)
	if err != nil {
		return err
	}
	c.storage["serviceaccounts"], c.storage["serviceaccounts/token"] = accounts, accounts.Token
	return nil
}
