package identity

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// profile is what a leaf must say.
type profile struct {
	user   string
	groups []string
	usages []x509.ExtKeyUsage
	hosts  Hosts
}

// accepts reports whether the certificate says what the profile asks for.
func (p profile) accepts(cert *x509.Certificate) bool {
	return cert.Subject.CommonName == p.user && slices.Equal(cert.Subject.Organization, p.groups) && p.hosts.coveredBy(cert)
}

// leaf is a certificate that renews itself when it is asked for and old enough.
type leaf struct {
	path    string
	signer  *authority
	profile profile
	now     func() time.Time

	mu      sync.Mutex
	current *pair
}

// openLeaf reads the leaf from its file, and issues it when there is none, it is due, or it no longer says what the profile asks for. A file that
// cannot be used is put aside: only the authority is hard to replace.
func (i *Identity) openLeaf(file string, signer *authority, p profile) (*leaf, error) {
	l := &leaf{path: filepath.Join(i.dir, file), signer: signer, profile: p, now: i.now}
	data, err := readFile(l.path)
	if err != nil {
		return nil, err
	}
	if data != nil {
		if l.current, err = usable(data, signer); err != nil {
			if err := i.putAside(l.path, err); err != nil {
				return nil, err
			}
		}
	}
	if _, err := l.certificate(); err != nil {
		return nil, err
	}
	return l, nil
}

// usable decodes a leaf that the authority has signed.
func usable(data []byte, signer *authority) (*pair, error) {
	p, err := decodePair(data)
	if err != nil {
		return nil, err
	}
	if err := p.cert.CheckSignatureFrom(signer.cert); err != nil {
		return nil, fmt.Errorf("it is not signed by this cluster's authority: %w", err)
	}
	return p, nil
}

// putAside renames a damaged leaf, so that what happened to it can still be seen.
func (i *Identity) putAside(path string, why error) error {
	aside := path + damagedSuffix
	if err := os.Rename(path, aside); err != nil {
		return fmt.Errorf("cannot put %s aside: %w", path, err)
	}
	i.log.Warn("a damaged certificate is replaced by a new one", "file", path, "kept", aside, "reason", why)
	return nil
}

// certificate returns the pair to show now, renewed first when it is due. When renewal fails and the old pair is still valid, that one is
// returned: a full disk must not close the port.
func (l *leaf) certificate() (*pair, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if l.current != nil && l.profile.accepts(l.current.cert) && now.Before(renewalTime(l.current.cert)) {
		return l.current, nil
	}
	if err := l.renew(now); err != nil {
		if l.current != nil && now.Before(l.current.cert.NotAfter) && l.profile.accepts(l.current.cert) {
			return l.current, nil
		}
		return nil, err
	}
	return l.current, nil
}

// renew issues a new pair and stores it before it is shown.
func (l *leaf) renew(now time.Time) error {
	fresh, err := l.signer.issue(l.profile, now)
	if err != nil {
		return fmt.Errorf("cannot issue %s: %w", l.path, err)
	}
	data, err := fresh.encode()
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", l.path, err)
	}
	if err := writeFile(l.path, data); err != nil {
		return err
	}
	l.current = fresh
	return nil
}

// renewalTime is when two thirds of the certificate's life are over.
func renewalTime(cert *x509.Certificate) time.Time {
	life := cert.NotAfter.Sub(cert.NotBefore)
	return cert.NotBefore.Add(life / renewAtDenominator * renewAtNumerator)
}

func (l *leaf) getCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) { return l.tls() }

func (l *leaf) getClientCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return l.tls()
}

func (l *leaf) tls() (*tls.Certificate, error) {
	p, err := l.certificate()
	if err != nil {
		return nil, err
	}
	return p.tls(), nil
}
