package node

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"

	"github.com/nodeactor/nodeactor/actors/apiserver"
	"github.com/nodeactor/nodeactor/actors/health"
	"github.com/nodeactor/nodeactor/cluster/identity"
	"github.com/nodeactor/nodeactor/supervision"
)

// TestF053_APanicOfAHandlerIsCounted asks the API's server for something that panics, and reads the metric before and after.
func TestF053_APanicOfAHandlerIsCounted(t *testing.T) {
	p := ported(t)
	countPanics()
	s, _ := p.store.get()
	bad := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") })
	api, err := apiserver.New(t.Context(), apiserver.Config{
		Store: s, Identity: p.identity, Log: p.log, AdvertiseAddr: "192.0.2.1:6443", ExtraHandlers: map[string]http.Handler{"/bad": bad},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Close)
	if err := api.Bootstrap(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.sys, err = supervision.New(supervision.Config{Log: p.log})
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(&health.Collector{System: p.sys, Root: rootPath, Facts: p.facts}); err != nil {
		t.Fatal(err)
	}
	before := panicsIn(t, registry)
	client := kubernetes.NewForConfigOrDie(api.InProcess(identity.AdminUser, identity.MastersGroup))
	for range 3 {
		err := client.Discovery().RESTClient().Get().AbsPath("/bad").MaxRetries(0).Do(t.Context()).Error()
		if err == nil || !strings.Contains(err.Error(), "panic") {
			t.Fatalf("the request gives %v", err)
		}
	}
	if n := panicsIn(t, registry) - before; n != 3 {
		t.Errorf("3 requests panicked, %v were counted", n)
	}
}

func panicsIn(t *testing.T, registry prometheus.Gatherer) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "nodeactor_panics_total" {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatal("the metric is not there")
	return 0
}
