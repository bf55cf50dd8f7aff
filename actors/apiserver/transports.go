package apiserver

import (
	"crypto/tls"
	"net"
	"net/http"

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
