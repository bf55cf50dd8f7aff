package identity

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"time"
)

// Client is a certificate of a client, with its key and the authority that signed it, in PEM.
type Client struct {
	CA, Cert, Key []byte
	Expires       time.Time
}

// IssueEtcdReader signs a certificate that may read the whole store through the etcd API, and has no right at the Kubernetes API. It is valid
// for life; nothing can take it back earlier. It is kept nowhere.
func (i *Identity) IssueEtcdReader(name string, life time.Duration) (Client, error) {
	expires := i.now().Add(life)
	if expires.After(i.authority.cert.NotAfter) {
		expires = i.authority.cert.NotAfter
	}
	p, err := sign(&x509.Certificate{
		Subject:               pkix.Name{CommonName: EtcdReaderPrefix + name, Organization: []string{EtcdReadersGroup}},
		NotBefore:             i.now().Add(-backdate),
		NotAfter:              expires,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:           clientUsage,
		BasicConstraintsValid: true,
	}, &i.authority.pair)
	if err != nil {
		return Client{}, fmt.Errorf("cannot issue certificate of etcd reader %s: %w", name, err)
	}
	key, err := encodeKey(p.key)
	if err != nil {
		return Client{}, fmt.Errorf("cannot encode certificate of etcd reader %s: %w", name, err)
	}
	return Client{CA: i.CAPEM(), Cert: p.certPEM(), Key: key, Expires: p.cert.NotAfter}, nil
}
