package node

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/nodeactor/nodeactor/store"
)

func TestEtcdAccessIsByGroup(t *testing.T) {
	for _, c := range []struct {
		groups []string
		want   store.EtcdAccess
	}{
		{[]string{"system:masters"}, store.EtcdWrite},
		{[]string{"nodeactor:etcd-readers"}, store.EtcdRead},
		{[]string{"nodeactor:etcd-readers", "system:masters"}, store.EtcdWrite},
		{[]string{"system:nodes"}, store.EtcdNone},
		{[]string{"System:masters", "nodeactor:etcd"}, store.EtcdNone},
		{nil, store.EtcdNone},
	} {
		if got := etcdAccess(&x509.Certificate{Subject: pkix.Name{CommonName: "system:masters", Organization: c.groups}}); got != c.want {
			t.Errorf("%v: got %v, want %v", c.groups, got, c.want)
		}
	}
}

func TestEtcdWritesNeedAListener(t *testing.T) {
	c := Config{NodeName: "n", EtcdWrites: true}.WithDefaults()
	if err := c.Validate(); err != nil {
		t.Errorf("refused: %v", err)
	}
	c.EtcdAddr = "off"
	if err := c.Validate(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "--etcd-writes") {
		t.Errorf("got %v", err)
	}
}

func TestSocketTellsOfTheEtcdAPI(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want EtcdLine
	}{
		{Config{EtcdAddr: ":2379"}, EtcdLine{URL: "https://127.0.0.1:2379"}},
		{Config{EtcdAddr: "192.0.2.1:4001", EtcdWrites: true}, EtcdLine{URL: "https://192.0.2.1:4001", Writes: true, Note: writesNote}},
		{Config{EtcdAddr: "off"}, EtcdLine{}},
	} {
		h := (&parts{cfg: c.cfg}).withEtcd(http.NotFoundHandler())
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, etcdPath, nil))
		var got EtcdLine
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got != c.want {
			t.Errorf("%+v: got %+v, %v", c.cfg, got, err)
		}
		w = httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/else", nil))
		if w.Code != http.StatusNotFound {
			t.Errorf("everything else: %d", w.Code)
		}
	}
}
