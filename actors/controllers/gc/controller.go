package gc

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
)

// New makes the controller.
func New(client metadata.Interface, api discovery.DiscoveryInterface) kube.Controller {
	return kube.Controller{
		Name:    "gc",
		About:   func(c *cache.Cache, key kube.Key) *cache.Meta { return c.MetaByUID(types.UID(key.Name)) },
		Initial: initial,
		Reads:   []kube.Read{{Keys: touched}},
		New: func(c *cache.Cache) kube.Reconciler {
			return &reconciler{
				cache: c, client: client, slots: make(chan struct{}, parallel),
				mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(api)),
			}
		},
	}
}
