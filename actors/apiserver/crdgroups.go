package apiserver

import (
	"slices"
	"sync"

	apiextensionshelpers "k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/listers/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/client-go/tools/cache"
)

// customGroups keeps the groups of custom resources in the plain list under /apis. The aggregated list has them from upstream's own
// controller; the plain one would have them from an aggregator in front, which we do without.
type customGroups struct {
	list   v1.CustomResourceDefinitionLister
	groups discovery.GroupManager

	mu    sync.Mutex
	shown map[string]metav1.APIGroup
}

// listCustomGroups shows the group of CustomResourceDefinitions, and those they define as they come and go.
func (s *Server) listCustomGroups() error {
	definitions := s.crds.Informers.Apiextensions().V1().CustomResourceDefinitions()
	g := &customGroups{list: definitions.Lister(), groups: s.api.DiscoveryGroupManager, shown: map[string]metav1.APIGroup{}}
	g.groups.AddGroup(apiGroup(apiextensions.GroupName, []string{apiextensionsv1.SchemeGroupVersion.Version}))
	_, err := definitions.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { g.refresh() },
		UpdateFunc: func(any, any) { g.refresh() },
		DeleteFunc: func(any) { g.refresh() },
	})
	return err
}

// refresh makes what is shown what is defined.
func (g *customGroups) refresh() {
	g.mu.Lock()
	defer g.mu.Unlock()
	defined := g.defined()
	for name, group := range defined {
		if have, ok := g.shown[name]; !ok || !slices.Equal(have.Versions, group.Versions) {
			g.groups.AddGroup(group)
		}
	}
	for name := range g.shown {
		if _, ok := defined[name]; !ok {
			g.groups.RemoveGroup(name)
		}
	}
	g.shown = defined
}

func (g *customGroups) defined() map[string]metav1.APIGroup {
	crds, err := g.list.List(labels.Everything())
	if err != nil {
		return g.shown
	}
	versions := map[string][]string{}
	for _, crd := range crds {
		if !apiextensionshelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
			continue
		}
		for _, v := range crd.Spec.Versions {
			if v.Served && !slices.Contains(versions[crd.Spec.Group], v.Name) {
				versions[crd.Spec.Group] = append(versions[crd.Spec.Group], v.Name)
			}
		}
	}
	groups := map[string]metav1.APIGroup{}
	for name, served := range versions {
		groups[name] = apiGroup(name, served)
	}
	return groups
}

// apiGroup describes a group; the most stable and newest version comes first and is preferred.
func apiGroup(name string, versions []string) metav1.APIGroup {
	slices.SortFunc(versions, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	group := metav1.APIGroup{Name: name}
	for _, v := range versions {
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{
			GroupVersion: schema.GroupVersion{Group: name, Version: v}.String(), Version: v,
		})
	}
	if len(group.Versions) > 0 {
		group.PreferredVersion = group.Versions[0]
	}
	return group
}
