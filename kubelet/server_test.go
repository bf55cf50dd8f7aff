package kubelet

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"

	"github.com/nodeactor/nodeactor/test/loopback"
)

// pki is a throw-away authority.
type pki struct {
	ca   *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
	pem  []byte
}

func newPKI(t *testing.T) *pki {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	ca, _ := x509.ParseCertificate(der)
	p := &pki{ca: ca, key: key, pool: x509.NewCertPool(), pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
	p.pool.AddCert(ca)
	return p
}

func (p *pki) cert(t *testing.T, cn string, orgs ...string) (tls.Certificate, []byte, []byte) {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: cn, Organization: orgs}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, p.ca, key.Public(), p.key)
	if err != nil {
		t.Fatal(err)
	}
	kb, _ := x509.MarshalECPrivateKey(key)
	cp, kp := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: kb})
	c, err := tls.X509KeyPair(cp, kp)
	if err != nil {
		t.Fatal(err)
	}
	return c, cp, kp
}

// served is a host with its server, and a client of it.
type served struct {
	*host
	addr string
	rest *restclient.Config
	pki  *pki
}

func newServed(t *testing.T) *served {
	p := newPKI(t)
	server, _, _ := p.cert(t, "node")
	s := &served{addr: loopback.Free(t), pki: p}
	s.host = newHost(t, func(d *Deps) {
		d.Config.ListenAddr = s.addr
		d.ServingTLS = &tls.Config{Certificates: []tls.Certificate{server}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: p.pool}
	})
	s.rest = s.as("admin", "system:masters")
	return s
}

func (s *served) as(cn string, orgs ...string) *restclient.Config {
	_, cert, key := s.pki.cert(s.t.(*testing.T), cn, orgs...)
	return &restclient.Config{Host: "https://" + s.addr, TLSClientConfig: restclient.TLSClientConfig{CAData: s.pki.pem, CertData: cert, KeyData: key}}
}

func (s *served) url(path string, q url.Values) *url.URL {
	return &url.URL{Scheme: "https", Host: s.addr, Path: path, RawQuery: q.Encode()}
}

func (s *served) get(cfg *restclient.Config, path string) (int, string) {
	s.t.Helper()
	rt, err := restclient.TransportFor(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: rt, Timeout: patience}).Get("https://" + s.addr + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

func (s *served) exec(ctx context.Context, websocket bool, pod string, in io.Reader, command ...string) (string, string, error) {
	s.t.Helper()
	q := url.Values{"command": command, "output": {"1"}, "error": {"1"}}
	if in != nil {
		q.Set("input", "1")
	}
	var e remotecommand.Executor
	var err error
	if websocket {
		e, err = remotecommand.NewWebSocketExecutor(s.rest, "GET", s.url("/exec/default/"+pod+"/main", q).String())
	} else {
		e, err = remotecommand.NewSPDYExecutor(s.rest, "POST", s.url("/exec/default/"+pod+"/main", q))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	err = e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: &out, Stderr: &errOut})
	return out.String(), errOut.String(), err
}

func TestServerAuthenticatesAndAuthorizes(t *testing.T) {
	s := newServed(t)
	if code, _ := s.get(s.rest, "/healthz"); code != 200 {
		t.Errorf("admin: %d", code)
	}
	if code, _ := s.get(s.as("kube-apiserver-kubelet-client"), "/pods"); code != 200 {
		t.Errorf("API server: %d", code)
	}
	if code, body := s.get(s.as("somebody"), "/pods"); code != 403 || !strings.Contains(body, "somebody") {
		t.Errorf("somebody: %d %s", code, body)
	}
	anonymous := &restclient.Config{TLSClientConfig: restclient.TLSClientConfig{CAData: s.pki.pem}}
	if code, _ := s.get(anonymous, "/pods"); code != 401 {
		t.Errorf("anonymous: %d", code)
	}
	for _, path := range []string{"/run/x", "/logs/", "/configz"} {
		if code, body := s.get(s.rest, path); code != 501 || !strings.Contains(body, "not served") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}

func TestExecLogsAndPortForward(t *testing.T) {
	s := newServed(t)
	s.create(shell("srv", "echo begin; httpd -p 127.0.0.1:8080 -h /www; i=0; while test $i -lt 5; do i=$((i+1)); echo line $i; sleep 0.1; done; exec sleep 1000"))
	s.running("srv")
	for _, websocket := range []bool{false, true} {
		out, errOut, err := s.exec(t.Context(), websocket, "srv", nil, "sh", "-c", "echo out; echo err >&2; exit 5")
		exit, ok := err.(utilexec.ExitError)
		if out != "out\n" || errOut != "err\n" || !ok || exit.ExitStatus() != 5 {
			t.Errorf("exec (websocket %t): %q %q %v", websocket, out, errOut, err)
		}
		out, _, err = s.exec(t.Context(), websocket, "srv", strings.NewReader("through the pipe"), "cat")
		if out != "through the pipe" || err != nil {
			t.Errorf("exec with input (websocket %t): %q %v", websocket, out, err)
		}
	}
	if code, body := s.get(s.rest, "/containerLogs/default/srv/main?tailLines=1&limitBytes=6"); code != 200 || !strings.HasPrefix(body, "line ") {
		t.Errorf("logs: %d %q", code, body)
	}
	s.follow(t)
	s.forward(t)
	for path, want := range map[string]string{"/pods": `"srv"`, "/runningpods/": `"srv"`, "/stats/summary": `"usageCoreNanoSeconds"`, "/metrics": "kubelet_running_pods 2",
		"/metrics/resource": `container_cpu_usage_seconds_total{container="main",namespace="default",pod="srv"}`} {
		if code, body := s.get(s.rest, path); code != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	for path, want := range map[string]int{"/exec/default/srv/main": 400, "/exec/default/srv/main?command=ls": 400, "/exec/default/none/main?command=ls": 404,
		"/exec/default/srv/none?command=ls": 404, "/containerLogs/default/srv/main?tailLines=x": 422, "/containerLogs/default/srv/main?previous=true": 400} {
		if code, body := s.get(s.rest, path); code != want || body == "" {
			t.Errorf("%s: %d %q, want %d", path, code, body, want)
		}
	}
}

// follow reads the log until the pod goes.
func (s *served) follow(t *testing.T) {
	done := make(chan string, 1)
	go func() {
		_, body := s.get(s.rest, "/containerLogs/default/srv/main?follow=true&timestamps=true")
		done <- body
	}()
	s.create(shell("other", "exec sleep 1000"))
	s.running("other")
	defer func() {
		begin := time.Now()
		ended := make(chan error, 1)
		go func() {
			_, _, err := s.exec(t.Context(), false, "srv", nil, "sleep", "1000")
			ended <- err
		}()
		time.Sleep(300 * time.Millisecond)
		s.mark("srv", 0)
		select {
		case err := <-ended:
			if exit, ok := err.(utilexec.ExitError); !ok || exit.ExitStatus() != 137 {
				t.Errorf("exec when the pod goes: %v", err)
			}
		case <-time.After(patience):
			t.Error("exec did not end with its pod")
		}
		select {
		case body := <-done:
			if !strings.Contains(body, " begin\n") || !strings.Contains(body, " line 5\n") {
				t.Errorf("followed log: %q", body)
			}
		case <-time.After(patience):
			t.Error("following did not end with its pod")
		}
		t.Logf("streams ended after %v", time.Since(begin))
		s.wait("srv", "gone", func(p *v1.Pod) bool { return p == nil })
		again := shell("srv", "httpd -p 127.0.0.1:8080 -h /www; exec sleep 1000")
		again.UID = "another-uid"
		s.create(again)
		s.running("srv")
	}()
}

// forward makes many connections over one forward.
func (s *served) forward(t *testing.T) {
	rt, upgrader, err := spdy.RoundTripperFor(s.rest)
	if err != nil {
		t.Fatal(err)
	}
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: rt}, "POST", s.url("/portForward/default/srv", nil))
	stop, ready := make(chan struct{}), make(chan struct{})
	defer close(stop)
	fw, err := portforward.New(dialer, []string{"0:8080"}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	go fw.ForwardPorts()
	select {
	case <-ready:
	case <-time.After(patience):
		t.Fatal("the forward is not ready")
	}
	ports, _ := fw.GetPorts()
	for i := range 50 {
		if i%5 == 0 { // an aborted connection must not disturb the others
			if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", ports[0].Local)); err == nil {
				c.(*net.TCPConn).SetLinger(0)
				fmt.Fprint(c, "GET / HTTP/1.0\r\n")
				c.Close()
			}
		}
		body, err := httpGet(fmt.Sprintf("http://127.0.0.1:%d/index.html", ports[0].Local))
		if body != "hello from the pod\n" || err != nil {
			t.Fatalf("forwarded GET %d: %q, %v", i, body, err)
		}
	}
}

func TestTerminalAndAttach(t *testing.T) {
	s := newServed(t)
	p := shell("tty", "read x; echo got $x; exec sleep 1000")
	p.Spec.Containers[0].Stdin = true
	s.create(p)
	s.running("tty")
	e, err := remotecommand.NewSPDYExecutor(s.rest, "POST", s.url("/attach/default/tty/main", url.Values{"input": {"1"}, "output": {"1"}}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	begin := time.Now()
	out := &watched{want: "got hello", found: cancel}
	_ = e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: strings.NewReader("hello\n"), Stdout: out})
	t.Logf("attached for %v", time.Since(begin))
	if !strings.Contains(out.buf.String(), "got hello") {
		t.Errorf("attach: %q", out.buf.String())
	}
	q := url.Values{"command": {"sh", "-c", "test -t 0 && echo terminal"}, "input": {"1"}, "output": {"1"}, "tty": {"1"}}
	e, err = remotecommand.NewSPDYExecutor(s.rest, "POST", s.url("/exec/default/tty/main", q))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader(""), Stdout: &b, Tty: true}); err != nil || !strings.Contains(b.String(), "terminal") {
		t.Errorf("exec with a terminal: %q %v", b.String(), err)
	}
}

// watched calls found once want was written.
type watched struct {
	buf   bytes.Buffer
	want  string
	found func()
}

// Write keeps p.
func (w *watched) Write(p []byte) (int, error) {
	n, err := w.buf.Write(p)
	if strings.Contains(w.buf.String(), w.want) {
		w.found()
	}
	return n, err
}
