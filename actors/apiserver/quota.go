package apiserver

import (
	"context"
	"io"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"

	"github.com/nodeactor/nodeactor/store"
)

// quotasDir is where ResourceQuotas are stored, by namespace.
const quotasDir = storagePrefix + "/resourcequotas/"

// quotaPlugin is upstream's plug-in, asked only in namespaces that have a quota: it hands each write to a worker and waits for it.
type quotaPlugin struct {
	*resourcequota.QuotaAdmission
	store *store.Store
}

// registerQuota makes the plug-in known.
func (s *Server) registerQuota(plugins *admission.Plugins) {
	plugins.Register(resourcequota.PluginName, func(io.Reader) (admission.Interface, error) {
		config, err := resourcequota.LoadConfiguration(nil)
		if err != nil {
			return nil, err
		}
		upstream, err := resourcequota.NewResourceQuota(config, quotaWorkers)
		return quotaPlugin{upstream, s.config.Store}, err
	})
}

// Validate implements admission.ValidationInterface.
func (p quotaPlugin) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if namespace := a.GetNamespace(); namespace == "" || !p.store.Any(quotasDir+namespace+"/") {
		return nil
	}
	return p.QuotaAdmission.Validate(ctx, a, o)
}
