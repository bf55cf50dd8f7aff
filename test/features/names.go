package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// names are the tests of the module: the folder of the package, a dot and the function.
type names map[string]bool

// of are the tests whose names begin with the number of a row.
func (n names) of(number string) (found []string) {
	for name := range n {
		if strings.HasPrefix(functionOf(name), "Test"+number+"_") {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// full is the test that a row means: it may leave out the folder where no other test has the name.
func (n names) full(name string) (string, error) {
	if n[name] {
		return name, nil
	}
	var found []string
	for full := range n {
		if functionOf(full) == name {
			found = append(found, full)
		}
	}
	switch len(found) {
	case 0:
		return name, fmt.Errorf("the test %s, which does not exist", name)
	case 1:
		return found[0], nil
	}
	slices.Sort(found)
	return name, fmt.Errorf("the test %s, which may be each of %s", name, strings.Join(found, ", "))
}

func functionOf(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// moduleRoot is the nearest folder upwards that has a go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("cannot find go.mod here or above")
		}
		dir = parent
	}
}

// testsIn parses the module's tests. A folder with a go.mod of its own is another module.
func testsIn(root string) (names, error) {
	all := names{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return enter(root, file, entry.Name())
		}
		if strings.HasSuffix(file, "_test.go") {
			return all.addFile(root, file)
		}
		return nil
	})
	return all, err
}

// enter says which folders are looked into: those that the go tool looks into.
func enter(root, dir, name string) error {
	if dir == root {
		return nil
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	if name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || err == nil {
		return fs.SkipDir
	}
	return nil
}

func (n names) addFile(root, file string) error {
	syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("cannot parse a test: %w", err)
	}
	rel, err := filepath.Rel(root, file)
	if err != nil {
		return err
	}
	for _, decl := range syntax.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && isTest(f) {
			n[path.Dir(filepath.ToSlash(rel))+"."+f.Name.Name] = true
		}
	}
	return nil
}

// isTest reports whether the go tool runs a function as a test: func TestX(t *testing.T).
func isTest(f *ast.FuncDecl) bool {
	params := f.Type.Params.List
	if f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") || len(params) != 1 {
		return false
	}
	star, ok := params[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	sel, ok := star.X.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "T"
}
