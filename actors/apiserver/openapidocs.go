package apiserver

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/NYTimes/gziphandler"
	"github.com/emicklei/go-restful/v3"
	apiextensionshelpers "k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/labels"
	openapibuilder "k8s.io/kube-openapi/pkg/builder"
	openapibuilder3 "k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common/restfuladapter"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// installOpenAPI serves the documents of all that is served. None is built yet.
func (s *Server) installOpenAPI() {
	b := &documentBuilder{server: s}
	release := s.version.info.GitVersion + s.version.info.GitCommit
	v3 := &documents{release: release, index: b.indexV3, build: b.buildV3, proto: handler3.ToV3ProtoBinary}
	v2 := &documents{release: release, index: b.indexV2, build: b.buildV2, proto: handler.ToProtoBinary}
	mux := s.api.Handler.NonGoRestfulMux
	mux.Handle(openAPIV3Path, http.HandlerFunc(v3.serveIndex))
	mux.HandlePrefix(openAPIV3Path+"/", gziphandler.GzipHandler(http.HandlerFunc(v3.serveDocument)))
	mux.Handle(openAPIV2Path, gziphandler.GzipHandler(http.HandlerFunc(v2.serveOnly)))
}

// documentBuilder builds documents from the routes of the built-in groups and from the CustomResourceDefinitions.
type documentBuilder struct {
	server *Server
}

// services returns the built-in routes by the path of their document.
func (b *documentBuilder) services() map[string]*restful.WebService {
	byPath := map[string]*restful.WebService{}
	for _, container := range []*restful.Container{b.server.crds.GenericAPIServer.Handler.GoRestfulContainer, b.server.api.Handler.GoRestfulContainer} {
		for _, service := range container.RegisteredWebServices() {
			byPath[strings.TrimPrefix(service.RootPath(), "/")] = service
		}
	}
	return byPath
}

// definitions returns the established CustomResourceDefinitions, sorted by name.
func (b *documentBuilder) definitions() []*apiextensionsv1.CustomResourceDefinition {
	crds, err := b.server.crds.Informers.Apiextensions().V1().CustomResourceDefinitions().Lister().List(labels.Everything())
	if err != nil {
		return nil
	}
	crds = slices.DeleteFunc(crds, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		return !apiextensionshelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established)
	})
	slices.SortFunc(crds, func(a, b *apiextensionsv1.CustomResourceDefinition) int { return strings.Compare(a.Name, b.Name) })
	return crds
}

// eachServed calls f for every served version of every definition.
func (b *documentBuilder) eachServed(f func(crd *apiextensionsv1.CustomResourceDefinition, version string) error) error {
	for _, crd := range b.definitions() {
		for _, version := range crd.Spec.Versions {
			if !version.Served {
				continue
			}
			if err := f(crd, version.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

func customPath(crd *apiextensionsv1.CustomResourceDefinition, version string) string {
	return "apis/" + crd.Spec.Group + "/" + version
}

// fingerprint changes with the definition.
func fingerprint(crd *apiextensionsv1.CustomResourceDefinition) string {
	return fmt.Sprintf("%s/%d;", crd.UID, crd.Generation)
}

func (b *documentBuilder) indexV3() map[string]string {
	index := map[string]string{}
	for path := range b.services() {
		index[path] = ""
	}
	_ = b.eachServed(func(crd *apiextensionsv1.CustomResourceDefinition, version string) error {
		index[customPath(crd, version)] += fingerprint(crd)
		return nil
	})
	return index
}

func (b *documentBuilder) indexV2() map[string]string {
	all := ""
	for _, crd := range b.definitions() {
		all += fingerprint(crd)
	}
	return map[string]string{openAPIV2Path: all}
}

func (b *documentBuilder) buildV3(path string) (any, error) {
	if service := b.services()[path]; service != nil {
		return openapibuilder3.BuildOpenAPISpecFromRoutes(restfuladapter.AdaptWebServices([]*restful.WebService{service}), builtinOpenAPI().v3)
	}
	var parts []*spec3.OpenAPI
	err := b.eachServed(func(crd *apiextensionsv1.CustomResourceDefinition, version string) error {
		if customPath(crd, version) != path {
			return nil
		}
		part, err := builder.BuildOpenAPIV3(crd, version, builder.Options{IncludeSelectableFields: true})
		parts = append(parts, part)
		return err
	})
	if err != nil || len(parts) == 0 {
		return nil, err
	}
	return builder.MergeSpecsV3(parts...)
}

func (b *documentBuilder) buildV2(string) (any, error) {
	var services []*restful.WebService
	for _, service := range b.services() {
		services = append(services, service)
	}
	slices.SortFunc(services, func(a, b *restful.WebService) int { return strings.Compare(a.RootPath(), b.RootPath()) })
	built, err := openapibuilder.BuildOpenAPISpecFromRoutes(restfuladapter.AdaptWebServices(services), builtinOpenAPI().v2)
	if err != nil {
		return nil, err
	}
	built.Definitions = handler.PruneDefaults(built.Definitions)
	var parts []*spec.Swagger
	err = b.eachServed(func(crd *apiextensionsv1.CustomResourceDefinition, version string) error {
		part, err := builder.BuildOpenAPIV2(crd, version, builder.Options{V2: true, IncludeSelectableFields: true})
		parts = append(parts, part)
		return err
	})
	if err != nil || len(parts) == 0 {
		return built, err
	}
	return builder.MergeSpecs(built, parts...)
}
