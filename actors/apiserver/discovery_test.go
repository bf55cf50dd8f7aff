package apiserver

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	"k8s.io/kube-openapi/pkg/spec3"
)

// servedGroups is every group and version that must be there, with the number of its resources without subresources.
var servedGroups = map[string]int{
	"v1":                              17,
	"admissionregistration.k8s.io/v1": 6,
	"apiextensions.k8s.io/v1":         1,
	"apps/v1":                         5,
	"authentication.k8s.io/v1":        2,
	"authorization.k8s.io/v1":         4,
	"autoscaling/v1":                  1,
	"autoscaling/v2":                  1,
	"batch/v1":                        2,
	"certificates.k8s.io/v1":          1,
	"coordination.k8s.io/v1":          1,
	"discovery.k8s.io/v1":             1,
	"events.k8s.io/v1":                1,
	"flowcontrol.apiserver.k8s.io/v1": 2,
	"networking.k8s.io/v1":            5,
	"node.k8s.io/v1":                  1,
	"policy/v1":                       1,
	"rbac.authorization.k8s.io/v1":    4,
	"resource.k8s.io/v1":              4,
	"scheduling.k8s.io/v1":            1,
	"storage.k8s.io/v1":               6,
}

func TestDiscoveryHasEveryStableGroup(t *testing.T) {
	f := newFixture(t)
	for _, legacy := range []bool{false, true} {
		client := discovery.NewDiscoveryClientForConfigOrDie(f.listen(t))
		client.UseLegacyDiscovery = legacy
		_, lists, err := client.ServerGroupsAndResources()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, list := range lists {
			for _, r := range list.APIResources {
				if !strings.Contains(r.Name, "/") {
					got[list.GroupVersion]++
				}
				if r.SingularName == "" && !strings.Contains(r.Name, "/") {
					t.Errorf("%s %s has no singular name", list.GroupVersion, r.Name)
				}
			}
		}
		for group, want := range servedGroups {
			if got[group] < want {
				t.Errorf("legacy=%v: %s has %d resources, want %d", legacy, group, got[group], want)
			}
		}
		for group := range got {
			if _, known := servedGroups[group]; !known && !strings.HasSuffix(group, "/v1") {
				t.Errorf("legacy=%v: %s is served and not stable", legacy, group)
			}
		}
	}
}

func TestVersion(t *testing.T) {
	f := newFixture(t)
	got, err := f.admin.Discovery().ServerVersion()
	if err != nil || got.Major != "1" || got.Minor != "37" || !strings.HasPrefix(got.GitVersion, KubernetesVersion) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestOpenAPIDescribesEveryGroup(t *testing.T) {
	f := newFixture(t)
	client := discovery.NewDiscoveryClientForConfigOrDie(f.listen(t))
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	for group := range servedGroups {
		path := "apis/" + group
		if group == "v1" {
			path = "api/v1"
		}
		if paths[path] == nil {
			t.Errorf("no document for %s", path)
		}
	}
	schema := openAPISchema(t, paths["apis/apps/v1"], "io.k8s.api.apps.v1.DeploymentStrategy")
	if !strings.Contains(schema, "Can be \\\"Recreate\\\" or \\\"RollingUpdate\\\"") {
		t.Errorf("got %s", schema)
	}
	v2, err := client.OpenAPISchema()
	if err != nil || len(v2.GetDefinitions().GetAdditionalProperties()) < 500 {
		t.Errorf("the v2 document has %d definitions, %v", len(v2.GetDefinitions().GetAdditionalProperties()), err)
	}
}

// openAPISchema returns a schema of the document as JSON, or fails.
func openAPISchema(t *testing.T, path openapi.GroupVersion, name string) string {
	t.Helper()
	data, err := path.Schema("application/json")
	if err != nil {
		t.Fatal(err)
	}
	var document spec3.OpenAPI
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	schema := document.Components.Schemas[name]
	if schema == nil {
		names := []string{}
		for n := range document.Components.Schemas {
			names = append(names, n)
		}
		slices.Sort(names)
		t.Fatalf("no %s among %v", name, names)
	}
	text, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
