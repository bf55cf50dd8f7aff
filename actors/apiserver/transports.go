package apiserver

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/url"

	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/informers"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
)

// newKubeletTransport calls kubelets with the API server's own certificate. HTTP/2 stays off: exec and attach upgrade the connection.
func newKubeletTransport(config *tls.Config) http.RoundTripper {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlivePeriod}).DialContext,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: dialTimeout,
		MaxIdleConnsPerHost: idleConnections,
		IdleConnTimeout:     idleTimeout,
	}
}

// newPodTransport calls pods and Services for `proxy`. Whatever answers there is not trusted, so it is not verified either, and gets no
// credentials of ours.
func newPodTransport() http.RoundTripper {
	return newKubeletTransport(&tls.Config{InsecureSkipVerify: true}) //nolint:gosec // see above
}

// dynamicConfig is the loopback configuration for clients that know no types.
func (s *Server) dynamicConfig() *rest.Config {
	c := rest.CopyConfig(s.loopback)
	c.ContentType, c.AcceptContentTypes = "application/json", "application/json"
	return c
}

// serviceResolver finds a Service by its cluster address, for webhooks.
func (s *Server) serviceResolver() webhook.ServiceResolver {
	return &clusterServices{informers: s.informers}
}

type clusterServices struct {
	informers informers.SharedInformerFactory
}

// ResolveEndpoint returns the address of the Service's port.
func (c *clusterServices) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	return proxy.ResolveCluster(c.lister(), namespace, name, port)
}

func (c *clusterServices) lister() corev1listers.ServiceLister {
	return c.informers.Core().V1().Services().Lister()
}
