package kubelet

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

func httpGet(url string) (string, error) {
	c := http.Client{Timeout: 5 * time.Second}
	resp, err := c.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

func TestPodRunsServesAndGoes(t *testing.T) {
	h := newHost(t, nil)
	begin := time.Now()
	h.create(shell("web", "exec httpd -f -p 8080 -h /www"))
	p := h.running("web")
	t.Logf("ready after %v", time.Since(begin))
	if p.Status.Phase != v1.PodRunning || p.Status.PodIP == "" || p.Status.StartTime == nil || p.Status.QOSClass != v1.PodQOSBestEffort {
		t.Errorf("status: %+v", p.Status)
	}
	var body string
	var err error
	for range 50 {
		if body, err = httpGet(fmt.Sprintf("http://%s:8080/index.html", p.Status.PodIP)); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if body != "hello from the pod\n" || err != nil {
		t.Errorf("GET: %q, %v", body, err)
	}
	h.remove("web", 1)
	t.Log(h.events("web"))
}
