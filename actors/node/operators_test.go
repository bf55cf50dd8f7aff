package node

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/actors/operator/served"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

type leaflet struct {
	Text string `json:"text"`
}

func (leaflet) Kind() string { return "Leaflet" }

// deployment has the kind of a controller that every node has.
type deployment struct{ leaflet }

func (deployment) Kind() string { return "Deployment" }

func idle[S operator.Specification](t *testing.T) *served.Operator {
	t.Helper()
	o, err := served.Bind(operator.Func[S](func(context.Context, *operator.ManifestState[S]) (operator.Action, error) {
		return operator.None(), nil
	}), operator.OperatorConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestOperatorsInTheTree: an operator has its place among the controllers, with the same children and policies, which can be overridden.
func TestOperatorsInTheTree(t *testing.T) {
	cfg := Config{DataDir: t.TempDir(), Operators: []*served.Operator{idle[leaflet](t)}}.WithDefaults()
	root, err := Blueprint(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, e := range catalog.Describe(&root, nil) {
		paths = append(paths, e.Path)
	}
	for _, want := range []string{"node/controllers/leaflet", "node/controllers/leaflet/manifests/*", "node/controllers/leaflet/kinds", "node/controllers/leaflet/dispatcher"} {
		if !slices.Contains(paths, want) {
			t.Errorf("there is no %s", want)
		}
	}
	cfg.Operators = []*served.Operator{idle[deployment](t)}
	if _, err := Blueprint(cfg); !errors.Is(err, operator.ErrKindTaken) {
		t.Errorf("an operator in the place of a built-in controller: %v", err)
	}
}
