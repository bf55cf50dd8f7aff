package node

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nodeactor/nodeactor/supervision"
)

// asleep are controllers that are built in and not run, each with the reason. There are none.
var asleep = map[string]string{}

// TestF071_EveryControllerRunsOrIsKnownToSleep finds controllers in the sources: packages that make one.
func TestF071_EveryControllerRunsOrIsKnownToSleep(t *testing.T) {
	tree, err := Blueprint(Config{DataDir: t.TempDir(), NodeName: "host"}.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	made, run := controllersMade(t), map[string]bool{}
	i := slices.IndexFunc(tree.Children, func(s supervision.Spec) bool { return s.ID == "controllers" })
	for _, child := range tree.Children[i].Children {
		run[strings.ReplaceAll(child.ID, "-", "")] = true
	}
	if len(made) < 10 {
		t.Fatalf("only %v were found", slices.Sorted(maps.Keys(made)))
	}
	for name := range made {
		if run[name] == (asleep[name] != "") {
			t.Errorf("%s is run: %v, and asleep because %q", name, run[name], asleep[name])
		}
	}
	for name := range asleep {
		if !made[name] {
			t.Errorf("%s is asleep and does not exist", name)
		}
	}
}

// controllersMade are the packages below actors/controllers with a function that makes a controller or its child.
func controllersMade(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("../controllers/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]bool{}
	for _, file := range files {
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range syntax.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.IsExported() && makesOne(f.Type.Results) {
				made[filepath.Base(filepath.Dir(file))] = true
			}
		}
	}
	return made
}

// makesOne reports whether the first result is a kube.Controller or a supervision.Spec.
func makesOne(results *ast.FieldList) bool {
	if results == nil {
		return false
	}
	sel, ok := results.List[0].Type.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := sel.X.(*ast.Ident)
	return ok && (pkg.Name == "kube" && sel.Sel.Name == "Controller" || pkg.Name == "supervision" && sel.Sel.Name == "Spec")
}
