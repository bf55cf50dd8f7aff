package program

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nodeactor/nodeactor/actors/node"
	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/actors/operator/schema"
)

type leaflet struct {
	Text string `json:"text"`
}

func (leaflet) Kind() string { return "Leaflet" }

type tangle struct {
	Ends map[string]func() `json:"ends"`
}

func (tangle) Kind() string { return "Tangle" }

func nothing[S operator.Specification]() operator.Operator[S] {
	return operator.Func[S](func(context.Context, *operator.ManifestState[S]) (operator.Action, error) {
		return operator.None(), nil
	})
}

// into is what options make of a node.
func into(options ...Option) (node.Config, error) {
	var e extra
	for _, option := range options {
		option(&e)
	}
	var c node.Config
	return c, e.into(&c)
}

// TestBad_OperatorsOfAProgram: a program with operators that cannot run says so before its node begins.
func TestBad_OperatorsOfAProgram(t *testing.T) {
	var none operator.OperatorConfig
	if _, err := into(Operator(nothing[leaflet](), none)); err != nil {
		t.Error(err)
	}
	_, err := into(Operator(nothing[leaflet](), none), Operator(nothing[leaflet](), none))
	if !errors.Is(err, operator.ErrKindTaken) || !strings.Contains(err.Error(), "Leaflet") {
		t.Errorf("two operators of one kind: %v", err)
	}
	_, err = into(Operator(nothing[tangle](), none), Operator(nothing[leaflet](), none))
	if !errors.Is(err, schema.ErrNoSchema) || !strings.Contains(err.Error(), "ends{}") {
		t.Errorf("a type without a schema: %v", err)
	}
	_, err = into(Operator(nothing[leaflet](), operator.OperatorConfig{Concurrency: -1}))
	if err == nil || !strings.Contains(err.Error(), "Leaflet") {
		t.Errorf("a bad configuration: %v", err)
	}
}

// TestOperatorsAreTheNodes: what the options add is what the node gets.
func TestOperatorsAreTheNodes(t *testing.T) {
	var e extra
	Operator(nothing[leaflet](), operator.OperatorConfig{})(&e)
	var c node.Config
	if err := e.into(&c); err != nil || len(c.Operators) != 1 || c.Operators[0].Kind() != "Leaflet" {
		t.Errorf("the node has %v, %v", c.Operators, err)
	}
}
