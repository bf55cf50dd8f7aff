package rules

import (
	"go/ast"
	"go/token"
	"slices"
)

// blockingMethods are methods that wait for somebody else.
var blockingMethods = []string{"Wait", "Lock", "RLock", "Do", "RoundTrip", "Accept", "ListenAndServe", "Serve"}

// blockingFuncs are functions of packages that wait.
var blockingFuncs = map[string][]string{
	"time":     {"Sleep"},
	"net/http": {"Get", "Head", "Post", "PostForm", "ListenAndServe", "ListenAndServeTLS", "Serve"},
	"net":      {"Dial", "DialTimeout", "Listen"},
}

// receives finds what would block an actor: a wait written directly in a Receive, or in a method that Receive calls on
// its own receiver. Blocking work belongs in a job; the watchdog sees the rest.
func receives(t *Tree) []Finding {
	methods := methodsOf(t)
	var found []Finding
	for _, f := range t.Files {
		if f.Test || f.Dir() == "supervision" || under(f.Dir(), "test", "examples") {
			continue
		}
		ast.Inspect(f.Syntax, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.FuncDecl:
				if isReceive(n) {
					found = append(found, blocksIn(f, n, methods, map[*ast.FuncDecl]bool{})...)
				}
			case *ast.CallExpr:
				if body := handlerFunc(n); body != nil {
					found = append(found, waits(f, body, func(sel *ast.SelectorExpr) []Finding { return callWaits(f, sel) })...)
				}
			}
			return true
		})
	}
	return found
}

// method is one method with its file.
type method struct {
	file *File
	fn   *ast.FuncDecl
}

// methodKey names a method of a type of a folder.
type methodKey struct{ dir, receiver, name string }

func methodsOf(t *Tree) map[methodKey]method {
	all := map[methodKey]method{}
	for _, f := range t.Files {
		for _, decl := range f.Syntax.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv != nil && !f.Test {
				all[methodKey{f.Dir(), receiverType(fn), fn.Name.Name}] = method{f, fn}
			}
		}
	}
	return all
}

// isReceive recognises Receive(ctx, msg) error.
func isReceive(fn *ast.FuncDecl) bool {
	return fn.Recv != nil && fn.Name.Name == "Receive" && fn.Body != nil && fn.Type.Params.NumFields() == 2 && fn.Type.Results.NumFields() == 1
}

// handlerFunc is the body of supervision.HandlerFunc(func(ctx, msg) error {...}).
func handlerFunc(call *ast.CallExpr) *ast.BlockStmt {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "HandlerFunc" || len(call.Args) != 1 {
		return nil
	}
	if x, ok := sel.X.(*ast.Ident); !ok || x.Name != "supervision" {
		return nil
	}
	if lit, ok := call.Args[0].(*ast.FuncLit); ok {
		return lit.Body
	}
	return nil
}

// receiverType is the name of a method's type; type parameters do not count.
func receiverType(fn *ast.FuncDecl) string {
	expr := fn.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}

// receiverName is what a method calls its receiver.
func receiverName(fn *ast.FuncDecl) string {
	if names := fn.Recv.List[0].Names; len(names) == 1 {
		return names[0].Name
	}
	return ""
}

// blocksIn finds the waits in a method and in those that it calls on its own receiver. The supervisors of package
// supervision itself are left out: their locks guard a few assignments and are never held over anything that waits.
func blocksIn(f *File, fn *ast.FuncDecl, methods map[methodKey]method, seen map[*ast.FuncDecl]bool) []Finding {
	if seen[fn] || fn.Body == nil {
		return nil
	}
	seen[fn] = true
	return waits(f, fn.Body, func(sel *ast.SelectorExpr) []Finding {
		if x, ok := sel.X.(*ast.Ident); ok && x.Name == receiverName(fn) {
			if m, ok := methods[methodKey{f.Dir(), receiverType(fn), sel.Sel.Name}]; ok {
				return blocksIn(m.file, m.fn, methods, seen)
			}
		}
		return callWaits(f, sel)
	})
}

// waits finds the waits in a body; call judges what it calls. What a function literal does is left out: it runs
// elsewhere.
func waits(f *File, body *ast.BlockStmt, call func(*ast.SelectorExpr) []Finding) (found []Finding) {
	ast.Inspect(body, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.FuncLit, *ast.GoStmt:
			return false
		case *ast.SelectStmt:
			if !hasDefault(n) {
				found = append(found, f.at(n, "select without default in Receive: use a job"))
			}
			return false
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				found = append(found, f.at(n, "channel receive in Receive: use a job"))
			}
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok {
				found = append(found, call(sel)...)
			}
		}
		return true
	})
	return found
}

func hasDefault(s *ast.SelectStmt) bool {
	return slices.ContainsFunc(s.Body.List, func(c ast.Stmt) bool { return c.(*ast.CommClause).Comm == nil })
}

// callWaits judges one call x.name(...) by the names.
func callWaits(f *File, sel *ast.SelectorExpr) []Finding {
	x, isName := sel.X.(*ast.Ident)
	for pkg, names := range blockingFuncs {
		if isName && x.Name == localName(f.Syntax, pkg) {
			if slices.Contains(names, sel.Sel.Name) {
				return []Finding{f.at(sel, "%s.%s in Receive: use a job", x.Name, sel.Sel.Name)}
			}
			return nil
		}
	}
	if slices.Contains(blockingMethods, sel.Sel.Name) {
		return []Finding{f.at(sel, "%s waits in Receive: use a job", sel.Sel.Name)}
	}
	return nil
}
