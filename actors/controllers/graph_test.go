package controllers_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/controllers"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/test/golden"
)

const graphFile = "testdata/graph.golden"

// TestDeclaredReads keeps what wakes whom under review.
func TestDeclaredReads(t *testing.T) {
	var text strings.Builder
	client := kubernetes.NewForConfigOrDie(&rest.Config{})
	for _, c := range controllers.All(controllers.Deps{Client: client, Clock: supervision.RealClock()}) {
		fmt.Fprintf(&text, "%s: manifests %s;", c.Name, nameOf(c.Manifests, "by key"))
		for _, read := range c.Reads {
			how := "woken by"
			if read.Keys == nil {
				how = "reads"
			}
			fmt.Fprintf(&text, " %s %s;", how, nameOf(read.Kind, "everything"))
		}
		text.WriteString("\n")
	}
	golden.Check(t, graphFile, []byte(text.String()))
}

func nameOf(kind cache.Kind, none string) string {
	if kind == (cache.Kind{}) {
		return none
	}
	return kind.Name
}
