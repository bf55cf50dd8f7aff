package apiserver

import (
	"fmt"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	tokencache "k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/nodeactor/nodeactor/cluster/identity"
)

// audiences is who ServiceAccount tokens are for when they do not say.
var audiences = authenticator.Audiences{issuer}

// credentials are what requests are authenticated against.
type credentials struct {
	clientCA   dynamiccertificates.CAContentProvider
	frontProxy *authenticatorfactory.RequestHeaderConfig
	publicKeys serviceaccount.PublicKeysGetter
	tokens     serviceaccount.TokenGenerator
}

func newCredentials(id *identity.Identity) (*credentials, error) {
	clientCA, err := dynamiccertificates.NewStaticCAContent("client-ca", id.CAPEM())
	if err != nil {
		return nil, fmt.Errorf("cannot use the cluster's authority: %w", err)
	}
	frontProxyCA, err := dynamiccertificates.NewStaticCAContent("front-proxy-ca", id.FrontProxyCAPEM())
	if err != nil {
		return nil, fmt.Errorf("cannot use the front proxy's authority: %w", err)
	}
	publicKeys, err := serviceaccount.StaticPublicKeysGetter([]any{id.ServiceAccountKey().Public()})
	if err != nil {
		return nil, fmt.Errorf("cannot use the ServiceAccount key: %w", err)
	}
	tokens, err := serviceaccount.JWTTokenGenerator(issuer, id.ServiceAccountKey())
	if err != nil {
		return nil, fmt.Errorf("cannot use the ServiceAccount key: %w", err)
	}
	return &credentials{
		clientCA:   clientCA,
		publicKeys: publicKeys,
		tokens:     tokens,
		frontProxy: &authenticatorfactory.RequestHeaderConfig{
			CAContentProvider:   frontProxyCA,
			AllowedClientNames:  headerrequest.StaticStringSlice{identity.FrontProxyUser},
			UsernameHeaders:     headerrequest.StaticStringSlice{"X-Remote-User"},
			UIDHeaders:          headerrequest.StaticStringSlice{"X-Remote-Uid"},
			GroupHeaders:        headerrequest.StaticStringSlice{"X-Remote-Group"},
			ExtraHeaderPrefixes: headerrequest.StaticStringSlice{"X-Remote-Extra-"},
		},
	}, nil
}

// authenticator returns the chain for requests that come over the network: front proxy, client certificate, ServiceAccount token, anonymous.
func (c *credentials) authenticator(accounts serviceaccount.ServiceAccountTokenGetter) authenticator.Request {
	front := headerrequest.NewDynamicVerifyOptionsSecure(c.frontProxy.CAContentProvider.VerifyOptions, c.frontProxy.AllowedClientNames,
		c.frontProxy.UsernameHeaders, c.frontProxy.UIDHeaders, c.frontProxy.GroupHeaders, c.frontProxy.ExtraHeaderPrefixes)
	bound := serviceaccount.JWTTokenAuthenticator([]string{issuer}, c.publicKeys, audiences, serviceaccount.NewValidator(accounts))
	tokens := tokencache.New(bound, true, tokenCacheLife, 0)
	known := union.New(
		authenticator.WrapAudienceAgnosticRequest(audiences, onlyWithHeader("X-Remote-User", front)),
		newCertificateCache(x509.NewDynamic(c.clientCA.VerifyOptions, x509.CommonNameUserConversion)),
		bearertoken.New(tokens),
		websocket.NewProtocolAuthenticator(tokens),
	)
	return union.NewFailOnError(group.NewAuthenticatedGroupAdder(known), anonymous.NewAuthenticator(nil))
}
