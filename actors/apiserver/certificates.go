package apiserver

import (
	"crypto/sha256"
	"net/http"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"

	"github.com/nodeactor/nodeactor/supervision"
)

// certificateCache remembers which client certificates were found good. Upstream verifies the signature for every request, which is half of what
// a small read costs; that the client holds the key was proven when the connection was made.
type certificateCache struct {
	verify authenticator.Request
	now    func() time.Time

	mu    sync.RWMutex
	known map[[sha256.Size]byte]certificateVerdict
}

// certificateVerdict is good until it expires: after certificateVerdictLife, and never later than the certificate.
type certificateVerdict struct {
	who     *authenticator.Response
	expires time.Time
}

func newCertificateCache(verify authenticator.Request) *certificateCache {
	return &certificateCache{verify: verify, now: supervision.RealClock().Now, known: map[[sha256.Size]byte]certificateVerdict{}}
}

// AuthenticateRequest tells who the client is by its certificate.
func (c *certificateCache) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, false, nil
	}
	leaf := r.TLS.PeerCertificates[0]
	key, now := sha256.Sum256(leaf.Raw), c.now()
	c.mu.RLock()
	verdict, known := c.known[key]
	c.mu.RUnlock()
	if known && now.Before(verdict.expires) {
		return verdict.who, true, nil
	}
	who, ok, err := c.verify.AuthenticateRequest(r)
	if ok && err == nil {
		c.remember(key, certificateVerdict{who: who, expires: earlier(now.Add(certificateVerdictLife), leaf.NotAfter)})
	}
	return who, ok, err
}

func (c *certificateCache) remember(key [sha256.Size]byte, verdict certificateVerdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= maxCertificateVerdicts {
		clear(c.known) // rather than track which is the oldest: each costs one verification
	}
	c.known[key] = verdict
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// onlyWithHeader asks the authenticator only about requests that have the header.
func onlyWithHeader(header string, next authenticator.Request) authenticator.Request {
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		if len(r.Header[header]) == 0 {
			return nil, false, nil
		}
		return next.AuthenticateRequest(r)
	})
}
