package apiserver

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
)

func TestCertificateVerdictsExpire(t *testing.T) {
	now, asked := time.Now(), 0
	c := newCertificateCache(authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
		asked++
		return &authenticator.Response{User: &user.DefaultInfo{Name: "x"}}, true, nil
	}))
	c.now = func() time.Time { return now }
	request := func(raw string, notAfter time.Time) *http.Request {
		return &http.Request{TLS: &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{Raw: []byte(raw), NotAfter: notAfter}}}}
	}
	step := func(what string, r *http.Request, want int) {
		t.Helper()
		if who, ok, err := c.AuthenticateRequest(r); err != nil || !ok || who.User.GetName() != "x" {
			t.Fatalf("%s: got %v, %v, %v", what, who, ok, err)
		}
		if asked != want {
			t.Errorf("%s: verified %d times, want %d", what, asked, want)
		}
	}
	long := request("long", now.Add(24*time.Hour))
	step("first", long, 1)
	step("again", long, 1)
	step("another", request("short", now.Add(time.Second)), 2)
	now = now.Add(2 * time.Second)
	step("another after its end", request("short", now), 3)
	now = now.Add(certificateVerdictLife)
	step("after the verdict's life", long, 4)
	if _, ok, err := c.AuthenticateRequest(&http.Request{}); ok || err != nil {
		t.Errorf("no certificate: %v, %v", ok, err)
	}
	for i := range maxCertificateVerdicts * 2 {
		step("many", request(string(rune(i)), now.Add(time.Hour)), 5+i)
	}
	if len(c.known) > maxCertificateVerdicts {
		t.Errorf("%d verdicts are kept", len(c.known))
	}
}
