package identity

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"path/filepath"
	"time"
)

// authority signs leaves.
type authority struct {
	pair
	pool *x509.CertPool
}

// loadAuthority reads the authority from its file, or makes it.
func loadAuthority(dir, file, name string, now time.Time) (*authority, error) {
	path := filepath.Join(dir, file)
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	if data == nil {
		return createAuthority(path, name, now)
	}
	p, err := decodePair(data)
	if err == nil {
		err = usableAuthority(p.cert, now)
	}
	if err != nil {
		return nil, damagedRoot(path, err)
	}
	return newAuthority(p), nil
}

func usableAuthority(cert *x509.Certificate, now time.Time) error {
	switch {
	case !cert.IsCA:
		return errors.New("its certificate is not a certificate authority")
	case now.After(cert.NotAfter):
		return errors.New("its certificate expired on " + cert.NotAfter.Format(time.RFC3339))
	case now.Before(cert.NotBefore):
		return errors.New("its certificate is valid only from " + cert.NotBefore.Format(time.RFC3339) + "; is this machine's clock right?")
	}
	return nil
}

func createAuthority(path, name string, now time.Time) (*authority, error) {
	p, err := sign(&x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}, nil)
	if err != nil {
		return nil, err
	}
	data, err := p.encode()
	if err != nil {
		return nil, err
	}
	return newAuthority(p), writeFile(path, data)
}

func newAuthority(p *pair) *authority {
	pool := x509.NewCertPool()
	pool.AddCert(p.cert)
	return &authority{pair: *p, pool: pool}
}

// issue signs a leaf for the profile, valid from now on.
func (a *authority) issue(p profile, now time.Time) (*pair, error) {
	expires := now.Add(leafLife)
	if expires.After(a.cert.NotAfter) {
		expires = a.cert.NotAfter // a leaf that outlives its authority would be refused anyway
	}
	return sign(&x509.Certificate{
		Subject:               pkix.Name{CommonName: p.user, Organization: p.groups},
		NotBefore:             now.Add(-backdate),
		NotAfter:              expires,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:           p.usages,
		BasicConstraintsValid: true,
		DNSNames:              p.hosts.names(),
		IPAddresses:           p.hosts.addresses(),
	}, &a.pair)
}
