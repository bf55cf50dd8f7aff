package identity

import (
	"crypto/tls"
	"crypto/x509"
)

// serverUsage and clientUsage are what a leaf may be shown for.
var (
	serverUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	clientUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
)

// ServerTLS returns the configuration of the API server's listener. Client certificates are asked for, not required and not yet verified:
// the authenticators behind it decide, since some clients come with a token or with nothing.
func (i *Identity) ServerTLS(hosts Hosts) (*tls.Config, error) {
	return i.serving(apiServerFile, "kube-apiserver", hosts)
}

// KubeletServing returns the configuration of this node's kubelet listener. As in ServerTLS, the handler behind it has to verify clients;
// VerifyClient does that.
func (i *Identity) KubeletServing(node string, hosts Hosts) (*tls.Config, error) {
	return i.serving(kubeletFile, NodeUserPrefix+node, hosts)
}

func (i *Identity) serving(file, user string, hosts Hosts) (*tls.Config, error) {
	l, err := i.openLeaf(file, i.authority, profile{user: user, usages: serverUsage, hosts: hosts})
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		ClientAuth:     tls.RequestClientCert,
		GetCertificate: l.getCertificate,
		// An answer of two kilobytes in two records is two system calls on either side.
		DynamicRecordSizingDisabled: true,
	}, nil
}

// VerifyClient returns who a client is by its certificate chain, leaf first, as a TLS connection presents it. It fails when the chain does
// not lead to the cluster's authority.
func (i *Identity) VerifyClient(chain []*x509.Certificate) (user string, groups []string, err error) {
	if len(chain) == 0 {
		return "", nil, x509.UnknownAuthorityError{}
	}
	intermediates := x509.NewCertPool()
	for _, cert := range chain[1:] {
		intermediates.AddCert(cert)
	}
	_, err = chain[0].Verify(x509.VerifyOptions{
		Roots:         i.authority.pool,
		Intermediates: intermediates,
		CurrentTime:   i.now(),
		KeyUsages:     clientUsage,
	})
	if err != nil {
		return "", nil, err
	}
	return chain[0].Subject.CommonName, chain[0].Subject.Organization, nil
}

// AdminTLS returns the configuration with which the administrator calls the API server.
func (i *Identity) AdminTLS() (*tls.Config, error) {
	return i.client(adminFile, i.authority, profile{user: AdminUser, groups: []string{MastersGroup}, usages: clientUsage})
}

// NodeTLS returns the configuration with which this node's kubelet calls the API server.
func (i *Identity) NodeTLS(node string) (*tls.Config, error) {
	return i.client(nodeFile, i.authority, profile{user: NodeUserPrefix + node, groups: []string{NodesGroup}, usages: clientUsage})
}

// KubeletClientTLS returns the configuration with which the API server calls kubelets.
func (i *Identity) KubeletClientTLS() (*tls.Config, error) {
	return i.client(apiServerKubeletFile, i.authority, profile{user: KubeletClientUser, groups: []string{MastersGroup}, usages: clientUsage})
}

// FrontProxyTLS returns the configuration with which the API server calls aggregated API servers. Those are trusted by what their APIService
// says, not by the cluster's authority; the caller sets RootCAs.
func (i *Identity) FrontProxyTLS() (*tls.Config, error) {
	c, err := i.client(frontProxyFile, i.frontProxy, profile{user: FrontProxyUser, usages: clientUsage})
	if err != nil {
		return nil, err
	}
	c.RootCAs = nil
	return c, nil
}

func (i *Identity) client(file string, signer *authority, p profile) (*tls.Config, error) {
	l, err := i.openLeaf(file, signer, p)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:           tls.VersionTLS12,
		RootCAs:              i.authority.pool,
		GetClientCertificate: l.getClientCertificate,
	}, nil
}
