package rules

import (
	"go/ast"
	"slices"
)

// Limits of the lengths of functions outside tests, in lines from func to closing brace.
const (
	maxFunctionLines  = 80
	maxMedianLines    = 12
	maxNineInTenLines = 40
)

// Lengths are the lines of all functions outside tests, ascending.
func Lengths(t *Tree) []int {
	var all []int
	t.eachFunction(func(_ *File, _ *ast.FuncDecl, lines int) { all = append(all, lines) })
	slices.Sort(all)
	return all
}

// functionLength finds functions that hold more than one idea, by their length.
func functionLength(t *Tree) []Finding {
	var found []Finding
	t.eachFunction(func(f *File, d *ast.FuncDecl, lines int) {
		if lines > maxFunctionLines {
			found = append(found, f.at(d, "%s has %d lines, at most %d", d.Name.Name, lines, maxFunctionLines))
		}
	})
	return found
}

func (t *Tree) eachFunction(visit func(f *File, d *ast.FuncDecl, lines int)) {
	for _, f := range t.Files {
		for _, decl := range f.Syntax.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && !f.Test && d.Body != nil {
				visit(f, d, f.fset.Position(d.End()).Line-f.fset.Position(d.Pos()).Line+1)
			}
		}
	}
}
