package apiserver

import (
	"fmt"

	"k8s.io/kubernetes/pkg/routes"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

// installIssuer serves what others need to verify ServiceAccount tokens by themselves: who issues them, and the public keys.
func (s *Server) installIssuer() error {
	metadata, err := serviceaccount.NewOpenIDMetadataProvider(issuer, "", s.config.AdvertiseAddr, s.credentials.publicKeys)
	if err != nil {
		return fmt.Errorf("cannot describe the issuer of tokens: %w", err)
	}
	routes.NewOpenIDMetadataServer(metadata).Install(s.api.Handler.GoRestfulContainer)
	return nil
}
