package rules

import (
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
)

// topFolders must have a manual in doc.go.
var topFolders = []string{"actors", "kubelet", "cluster", "store", "supervision", "test"}

// packageSentence finds packages whose comment does not say in a sentence what they are.
func packageSentence(t *Tree) []Finding {
	said, first := map[string]bool{}, map[string]*File{}
	for _, f := range t.Files {
		if f.Test {
			continue
		}
		if first[f.Dir()] == nil {
			first[f.Dir()] = f
		}
		said[f.Dir()] = said[f.Dir()] || saysWhatItIs(f)
	}
	var found []Finding
	for _, dir := range slices.Sorted(maps.Keys(first)) {
		if f := first[dir]; !said[dir] {
			found = append(found, f.at(f.Syntax.Name, "package %s has no sentence that says what it is", f.Syntax.Name.Name))
		}
	}
	return found
}

func saysWhatItIs(f *File) bool {
	text := f.Syntax.Doc.Text()
	if f.Syntax.Name.Name == "main" {
		return strings.HasPrefix(text, "Command "+path.Base(f.Dir())+" ")
	}
	return strings.HasPrefix(text, "Package "+f.Syntax.Name.Name+" ")
}

// manuals finds top folders without doc.go.
func manuals(t *Tree) []Finding {
	var found []Finding
	for _, folder := range topFolders {
		exists := slices.ContainsFunc(t.Files, func(f *File) bool { return under(f.Dir(), folder) })
		hasManual := slices.ContainsFunc(t.Files, func(f *File) bool { return f.Path == folder+"/doc.go" })
		if exists && !hasManual {
			found = append(found, Finding{Path: folder + "/doc.go", Line: 1, Text: "the folder has no manual"})
		}
	}
	return found
}

// documented finds exported names without a comment.
func documented(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		if f.Test {
			continue
		}
		for _, decl := range f.Syntax.Decls {
			for _, name := range undocumented(decl) {
				found = append(found, f.at(name, "%s is exported and has no comment", name.Name))
			}
		}
	}
	return found
}

func undocumented(decl ast.Decl) []*ast.Ident {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && receiverIsExported(d) {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		return undocumentedSpecs(d)
	}
	return nil
}

// undocumentedSpecs accepts the comment of a group for its constants, variables and aliases, but wants one for each type.
func undocumentedSpecs(d *ast.GenDecl) []*ast.Ident {
	var found []*ast.Ident
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			groupSpeaks := d.Doc != nil && (s.Assign.IsValid() || !d.Lparen.IsValid())
			if s.Name.IsExported() && s.Doc == nil && s.Comment == nil && !groupSpeaks {
				found = append(found, s.Name)
			}
		case *ast.ValueSpec:
			if s.Doc != nil || s.Comment != nil || d.Doc != nil {
				continue
			}
			for _, name := range s.Names {
				if name.IsExported() {
					found = append(found, name)
				}
			}
		}
	}
	return found
}

func receiverIsExported(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	name := receiverType(d)
	return name == "" || ast.IsExported(name)
}

// sentinels finds exported error values whose comment does not say when they are returned.
func sentinels(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		for _, decl := range f.Syntax.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok || d.Tok != token.VAR || f.Test {
				continue
			}
			for _, spec := range d.Specs {
				s := spec.(*ast.ValueSpec)
				comment := s.Doc.Text() + s.Comment.Text() + d.Doc.Text()
				if name := s.Names[0]; isSentinel(s) && !strings.Contains(comment, "is returned") {
					found = append(found, f.at(name, "the comment of %s does not say when it \"is returned\"", name.Name))
				}
			}
		}
	}
	return found
}

func isSentinel(s *ast.ValueSpec) bool {
	if len(s.Values) != 1 || !strings.HasPrefix(s.Names[0].Name, "Err") {
		return false
	}
	call, ok := s.Values[0].(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && (sel.Sel.Name == "New" || sel.Sel.Name == "Errorf")
}
