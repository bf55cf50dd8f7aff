package apiserver

import (
	"fmt"
	"net/http"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	webhookinitializer "k8s.io/apiserver/pkg/admission/plugin/webhook/initializer"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	quota "k8s.io/apiserver/pkg/quota/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/kubernetes/pkg/kubeapiserver/admission/exclusion"
	quotainstall "k8s.io/kubernetes/pkg/quota/v1/install"
	certapproval "k8s.io/kubernetes/plugin/pkg/admission/certificates/approval"
	"k8s.io/kubernetes/plugin/pkg/admission/certificates/ctbattest"
	certsigning "k8s.io/kubernetes/plugin/pkg/admission/certificates/signing"
	certsubjectrestriction "k8s.io/kubernetes/plugin/pkg/admission/certificates/subjectrestriction"
	"k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
	"k8s.io/kubernetes/plugin/pkg/admission/network/defaultingressclass"
	"k8s.io/kubernetes/plugin/pkg/admission/nodedeclaredfeatures"
	"k8s.io/kubernetes/plugin/pkg/admission/noderestriction"
	"k8s.io/kubernetes/plugin/pkg/admission/nodetaint"
	"k8s.io/kubernetes/plugin/pkg/admission/podresize"
	"k8s.io/kubernetes/plugin/pkg/admission/podtopologylabels"
	podpriority "k8s.io/kubernetes/plugin/pkg/admission/priority"
	"k8s.io/kubernetes/plugin/pkg/admission/runtimeclass"
	"k8s.io/kubernetes/plugin/pkg/admission/scheduling/podgroupprotection"
	"k8s.io/kubernetes/plugin/pkg/admission/security/podsecurity"
	"k8s.io/kubernetes/plugin/pkg/admission/serviceaccount"
	"k8s.io/kubernetes/plugin/pkg/admission/storage/persistentvolume/resize"
	"k8s.io/kubernetes/plugin/pkg/admission/storage/storageclass/setdefault"
)

// admissionPlugins lists what every write passes, in upstream's order: upstream's defaults and NodeRestriction. Behind them comes quotaPlugin.
// StorageObjectInUseProtection is left out: it adds a finalizer that only a controller of volumes would take off again.
var admissionPlugins = []struct {
	name     string
	register func(*admission.Plugins)
}{
	{lifecycle.PluginName, lifecycle.Register},
	{limitranger.PluginName, limitranger.Register},
	{serviceaccount.PluginName, serviceaccount.Register},
	{noderestriction.PluginName, noderestriction.Register},
	{nodetaint.PluginName, nodetaint.Register},
	{podsecurity.PluginName, podsecurity.Register},
	{podpriority.PluginName, podpriority.Register},
	{defaulttolerationseconds.PluginName, defaulttolerationseconds.Register},
	{setdefault.PluginName, setdefault.Register},
	{podgroupprotection.PluginName, podgroupprotection.Register},
	{resize.PluginName, resize.Register},
	{runtimeclass.PluginName, runtimeclass.Register},
	{certapproval.PluginName, certapproval.Register},
	{certsigning.PluginName, certsigning.Register},
	{ctbattest.PluginName, ctbattest.Register},
	{certsubjectrestriction.PluginName, certsubjectrestriction.Register},
	{defaultingressclass.PluginName, defaultingressclass.Register},
	{podtopologylabels.PluginName, podtopologylabels.Register},
	{nodedeclaredfeatures.PluginName, nodedeclaredfeatures.Register},
	{podresize.PluginName, podresize.Register},
	{mutatingpolicy.PluginName, mutatingpolicy.Register},
	{mutatingwebhook.PluginName, mutatingwebhook.Register},
	{validatingpolicy.PluginName, validatingpolicy.Register},
	{validatingwebhook.PluginName, validatingwebhook.Register},
}

// newAdmission returns the chain that every write passes, over the network and in process alike.
func (s *Server) newAdmission(client kubernetes.Interface, objects dynamic.Interface, services webhook.ServiceResolver) (admission.Interface, error) {
	plugins := admission.NewPlugins()
	var names []string
	for _, plugin := range admissionPlugins {
		plugin.register(plugins)
		names = append(names, plugin.name)
	}
	s.registerQuota(plugins)
	newHonesty(s.config.WithoutEffect).register(plugins)
	names = append(names, resourcequota.PluginName, honestyPlugin)
	quotas, err := quotainstall.NewQuotaConfigurationForAdmission(s.informers, s.served)
	if err != nil {
		return nil, fmt.Errorf("cannot configure quotas: %w", err)
	}
	s.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	chain := admission.PluginInitializers{
		initializer.New(client, objects, s.informers, s.authorizer, utilfeature.DefaultFeatureGate, s.version, s.ctx.Done(), s.mapper),
		webhookinitializer.NewPluginInitializer(s.webhookAuth(), services),
		pluginFacts{quotas},
	}
	noConfig, err := admission.ReadAdmissionConfiguration(names, "", nil)
	if err != nil {
		return nil, err
	}
	return plugins.NewFromPlugins(names, noConfig, chain, nil)
}

// webhookAuth says how webhooks are called: with what their configuration says, and over a transport without any credentials of ours.
func (s *Server) webhookAuth() webhook.AuthenticationInfoResolverWrapper {
	return webhook.NewDefaultAuthenticationInfoResolverWrapper(http.DefaultTransport.(*http.Transport).Clone(), nil, s.loopback, noTracing)
}

// pluginFacts tells the plugins what no other initializer knows.
type pluginFacts struct{ quotas quota.Configuration }

// Initialize gives the plugin what it asks for.
func (f pluginFacts) Initialize(plugin admission.Interface) {
	if p, ok := plugin.(initializer.WantsQuotaConfiguration); ok {
		p.SetQuotaConfiguration(f.quotas)
	}
	if p, ok := plugin.(initializer.WantsExcludedAdmissionResources); ok {
		p.SetExcludedAdmissionResources(exclusion.Excluded())
	}
	if p, ok := plugin.(initializer.WantsManifestLoaders); ok {
		p.SetManifestLoaders(&initializer.ManifestLoaders{})
	}
}
