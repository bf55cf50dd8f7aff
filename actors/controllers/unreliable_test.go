package controllers_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errCut is what a request meets whose connection breaks.
var errCut = errors.New("the connection broke")

// unreliable is an API that at times breaks a connection before or after a write was carried out, or refuses it as a conflict.
type unreliable struct {
	next http.RoundTripper
	on   *atomic.Bool

	mu     sync.Mutex
	random *rand.Rand
	broken int
}

func (u *unreliable) draw() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := u.random.Intn(100)
	if n < 15 {
		u.broken++
	}
	return n
}

// RoundTrip implements http.RoundTripper.
func (u *unreliable) RoundTrip(r *http.Request) (*http.Response, error) {
	if !u.on.Load() || r.Method == http.MethodGet {
		return u.next.RoundTrip(r)
	}
	switch n := u.draw(); {
	case n < 5:
		return nil, errCut
	case n < 10:
		if response, err := u.next.RoundTrip(r); err == nil {
			response.Body.Close()
		}
		return nil, errCut
	case n < 15 && (r.Method == http.MethodPut || r.Method == http.MethodPatch):
		return conflict(r), nil
	}
	return u.next.RoundTrip(r)
}

func conflict(r *http.Request) *http.Response {
	body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","message":"for the test","code":409}`
	return &http.Response{
		StatusCode: http.StatusConflict, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader([]byte(body))), ContentLength: int64(len(body)),
	}
}

// TestUnreliableAPI rolls, scales and deletes over an API one in seven of whose writes goes wrong: the end is as if none had.
func TestUnreliableAPI(t *testing.T) {
	var on atomic.Bool
	u := &unreliable{on: &on, random: rand.New(rand.NewSource(1))}
	p := newPlaneOver(t, func(next http.RoundTripper) http.RoundTripper { u.next = next; return u })
	p.kubelet("default")
	on.Store(true)
	p.deploy(deployment("web", 6))
	p.eventually("rolled out", func() bool { return p.complete("web") })
	p.patch("web", `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"image:2"}]}}}}`)
	p.eventually("rolled on", func() bool { return p.complete("web") && len(p.sets()) == 2 && len(p.pods("default")) == 6 })
	p.patch("web", `{"spec":{"replicas":3}}`)
	p.eventually("scaled", func() bool { return p.complete("web") && len(p.pods("default")) == 3 })
	foreground := metav1.DeletePropagationForeground
	p.must(p.client.AppsV1().Deployments("default").Delete(p.ctx, "web", metav1.DeleteOptions{PropagationPolicy: &foreground}))
	p.eventually("all gone", func() bool { return len(p.sets()) == 0 && len(p.pods("default")) == 0 })
	if u.broken == 0 {
		t.Error("no request was broken")
	}
	for _, fault := range p.system.Faults().Recent() {
		t.Errorf("a broken request became a fault: %v", fault)
	}
}
