package apiserver

import (
	"maps"
	"net/http"

	"k8s.io/kube-openapi/pkg/common"
	generatedopenapi "k8s.io/kubernetes/pkg/generated/openapi"

	"github.com/nodeactor/nodeactor/actors/apiserver/supervisionapi"
	"github.com/nodeactor/nodeactor/actors/apiserver/supervisionrest"
)

// installTree adds the group of the supervision tree. Its objects change without a new resource version, so encodings are not kept.
func (s *Server) installTree(i *installer) error {
	if s.config.Tree == nil {
		return nil
	}
	fresh := *i
	fresh.encodings = nil
	return fresh.installNamed(supervisionrest.Group(s.config.Tree))
}

// refusingTreeWrites answers writes of the supervision tree with what to do instead; whoever may not write anyway has been refused before.
func (s *Server) refusingTreeWrites(api http.Handler) http.Handler {
	if s.config.Tree == nil {
		return api
	}
	return supervisionrest.Refuse(api)
}

// openAPIDefinitions are upstream's and those of the supervision tree.
func openAPIDefinitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := generatedopenapi.GetOpenAPIDefinitions(ref)
	maps.Copy(all, supervisionapi.OpenAPIDefinitions(ref))
	return all
}
