package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// Tree is a parsed module.
type Tree struct {
	Module  string // import path of the module
	Root    string // directory of the module
	Files   []*File
	Tracked map[string][]byte // tracked text files by path, Go files included
	fset    *token.FileSet
}

// File is one Go file of the module.
type File struct {
	Path   string // relative to the module's root, with slashes
	Syntax *ast.File
	Test   bool // its name ends in _test.go
	fset   *token.FileSet
}

// Finding is one violation of one rule.
type Finding struct {
	Path string
	Line int
	Rule string
	Text string
}

// String is the form editors and humans can follow: file:line.
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s (%s)", f.Path, f.Line, f.Text, f.Rule)
}

// Dir is the folder of the file, "." for the module's root.
func (f *File) Dir() string { return path.Dir(f.Path) }

// at makes a finding at a node of the file.
func (f *File) at(node ast.Node, format string, args ...any) Finding {
	return Finding{Path: f.Path, Line: f.fset.Position(node.Pos()).Line, Text: fmt.Sprintf(format, args...)}
}

// maxTextSize bounds the tracked files that are read; larger ones are data.
const maxTextSize = 1 << 20

// listed is what go list says about one package.
type listed struct {
	Dir                                          string
	GoFiles, CgoFiles, TestGoFiles, XTestGoFiles []string
	Module                                       struct{ Path, Dir string }
}

// Load parses the packages of the module that the current directory is in, and reads its tracked files.
func Load() (*Tree, error) {
	packages, err := list()
	if err != nil {
		return nil, err
	}
	t := &Tree{Tracked: map[string][]byte{}, fset: token.NewFileSet()}
	for _, p := range packages {
		t.Module, t.Root = p.Module.Path, p.Module.Dir
		for _, group := range [][]string{p.GoFiles, p.CgoFiles, p.TestGoFiles, p.XTestGoFiles} {
			for _, name := range group {
				if err := t.parse(filepath.Join(p.Dir, name)); err != nil {
					return nil, err
				}
			}
		}
	}
	return t, t.readTracked()
}

// list asks the go tool for the module's packages, without building anything.
func list() ([]listed, error) {
	root, err := run("go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return nil, err
	}
	fields := "-json=Dir,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles,Module"
	out, err := run("go", "-C", strings.TrimSpace(string(root)), "list", "-e", fields, "./...")
	if err != nil {
		return nil, err
	}
	var packages []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("cannot read the list of packages: %w", err)
		}
		packages = append(packages, p)
	}
}

func run(name string, args ...string) ([]byte, error) {
	out, err := exec.Command(name, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot run %s %s: %w", name, strings.Join(args, " "), err)
	}
	return out, nil
}

func (t *Tree) parse(file string) error {
	rel, err := filepath.Rel(t.Root, file)
	if err != nil {
		return err
	}
	source, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return t.add(filepath.ToSlash(rel), source)
}

func (t *Tree) add(rel string, source []byte) error {
	syntax, err := parser.ParseFile(t.fset, rel, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("cannot parse %s: %w", rel, err)
	}
	t.Tracked[rel] = source
	t.Files = append(t.Files, &File{Path: rel, Syntax: syntax, Test: strings.HasSuffix(rel, "_test.go"), fset: t.fset})
	return nil
}

// readTracked reads what git tracks. Where there is no repository, as in an unpacked archive, the Go files are all.
func (t *Tree) readTracked() error {
	out, err := run("git", "-C", t.Root, "ls-files", "-z")
	if err != nil {
		return nil
	}
	for _, name := range strings.Split(strings.TrimRight(string(out), "\x00"), "\x00") {
		raw, err := os.ReadFile(filepath.Join(t.Root, name))
		if err != nil || len(raw) > maxTextSize || bytes.IndexByte(raw, 0) >= 0 {
			continue // deleted but not yet committed, or no text
		}
		t.Tracked[name] = raw
	}
	return nil
}

// under reports whether a folder is one of the given ones or inside one of them.
func under(dir string, folders ...string) bool {
	for _, folder := range folders {
		if dir == folder || strings.HasPrefix(dir, folder+"/") {
			return true
		}
	}
	return false
}
