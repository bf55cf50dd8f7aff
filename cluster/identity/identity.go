package identity

import (
	"crypto/ecdsa"
	"crypto/x509"
	"log/slog"
	"path/filepath"
	"slices"
	"time"
)

// Identity is the loaded key material of one cluster on one node.
type Identity struct {
	dir        string
	now        func() time.Time
	authority  *authority
	frontProxy *authority
	saKey      *ecdsa.PrivateKey
	log        *slog.Logger
}

// Option changes how Load works.
type Option func(*Identity)

// WithNow replaces the clock by which certificates are issued and renewed.
func WithNow(now func() time.Time) Option {
	return func(i *Identity) { i.now = now }
}

// WithLog names the log that is told of files that had to be replaced; the default logger otherwise.
func WithLog(log *slog.Logger) Option {
	return func(i *Identity) { i.log = log }
}

// Load reads the identity kept in dir, and makes what is missing. It fails with an error that matches ErrDamaged when a file is there but
// cannot be used; nothing is overwritten then.
func Load(dir string, options ...Option) (*Identity, error) {
	i := &Identity{dir: dir, now: systemNow, log: slog.Default()}
	for _, option := range options {
		option(i)
	}
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	return i, i.loadRoots()
}

func (i *Identity) loadRoots() (err error) {
	now := i.now()
	i.noteLost()
	if i.authority, err = loadAuthority(i.dir, authorityFile, "nodeactor-ca", now); err != nil {
		return err
	}
	if i.frontProxy, err = loadAuthority(i.dir, frontProxyAuthorityFile, "nodeactor-front-proxy-ca", now); err != nil {
		return err
	}
	if err := i.loadServiceAccountKey(); err != nil {
		return err
	}
	return i.publishAuthority()
}

// publishAuthority keeps the certificate of the authority in a file of its own, for handing out.
func (i *Identity) publishAuthority() error {
	path := filepath.Join(i.dir, authorityCertFile)
	have, err := readFile(path)
	if err != nil || slices.Equal(have, i.CAPEM()) {
		return err
	}
	return writeFile(path, i.CAPEM())
}

// Dir returns the directory the identity is kept in.
func (i *Identity) Dir() string { return i.dir }

// CAPEM returns the certificate of the cluster's authority. The caller owns the slice.
func (i *Identity) CAPEM() []byte { return i.authority.certPEM() }

// CAPool returns a pool that trusts the cluster's authority. It must not be changed.
func (i *Identity) CAPool() *x509.CertPool { return i.authority.pool }

// FrontProxyCAPEM returns the certificate of the authority for front proxies. The caller owns the slice.
func (i *Identity) FrontProxyCAPEM() []byte { return i.frontProxy.certPEM() }

// FrontProxyCAPool returns a pool that trusts the authority for front proxies. It must not be changed.
func (i *Identity) FrontProxyCAPool() *x509.CertPool { return i.frontProxy.pool }

// ServiceAccountKey returns the key that signs ServiceAccount tokens.
func (i *Identity) ServiceAccountKey() *ecdsa.PrivateKey { return i.saKey }
