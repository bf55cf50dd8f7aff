package rules

import (
	"go/ast"
	"slices"
	"strings"
)

// freeFolders may start goroutines and ask the clock: supervision guards both for everybody else, commands and the package that they
// share are where the program begins, and tests are tests.
var freeFolders = []string{"supervision", "cmd", "program", "test", "examples"}

// clockFuncs are the functions of package time that read or wait for the machine's clock.
var clockFuncs = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// concurrency finds go statements, direct use of the clock, and random numbers where they are not supervised.
func concurrency(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		if f.Test || under(f.Dir(), freeFolders...) {
			continue
		}
		ast.Inspect(f.Syntax, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.GoStmt:
				found = append(found, f.at(n, "go statement: use a job of the actor or a supervised group"))
			case *ast.SelectorExpr:
				if usesClock(f.Syntax, n) {
					found = append(found, f.at(n, "time.%s: use the clock that is handed in", n.Sel.Name))
				}
			case *ast.ImportSpec:
				if strings.Contains(n.Path.Value, `"math/rand`) {
					found = append(found, f.at(n, "random numbers: take them from what is handed in"))
				}
			}
			return true
		})
	}
	return found
}

// usesClock reports whether a selector is one of clockFuncs of package time.
func usesClock(file *ast.File, sel *ast.SelectorExpr) bool {
	x, ok := sel.X.(*ast.Ident)
	return ok && slices.Contains(clockFuncs, sel.Sel.Name) && x.Name == localName(file, "time")
}

// localName is the name a file knows an import by; "" if it does not import it.
func localName(file *ast.File, target string) string {
	for _, spec := range file.Imports {
		if spec.Path.Value != `"`+target+`"` {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return target[strings.LastIndexByte(target, '/')+1:]
	}
	return ""
}
