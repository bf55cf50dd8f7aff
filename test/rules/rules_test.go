package rules

import (
	"go/token"
	"strings"
	"sync"
	"testing"
)

// loaded is the tree, which is read once.
var loaded = sync.OnceValues(Load)

// TestCheck01_Lint holds the rules that keep supervision in charge: only its folder knows the actor library, and nobody
// else starts goroutines, asks the clock or throws dice.
func TestCheck01_Lint(t *testing.T) {
	tree, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range []func(*Tree) []Finding{floors, engines, concurrency} {
		for _, finding := range check(tree) {
			t.Error(finding)
		}
	}
}

func TestTree(t *testing.T) {
	tree, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Files) < 50 {
		t.Fatalf("only %d files were found", len(tree.Files))
	}
	if n := len(receiveMethods(tree)); n < 20 {
		t.Errorf("only %d actors were found", n)
	}
	for _, finding := range Check(tree) {
		t.Error(finding)
	}
	lengths := Lengths(tree)
	median, nineInTen := lengths[len(lengths)/2], lengths[len(lengths)*9/10]
	t.Logf("%d functions, median %d lines, nine in ten up to %d", len(lengths), median, nineInTen)
	if median > maxMedianLines || nineInTen > maxNineInTenLines {
		t.Errorf("functions have %d lines in the median and nine in ten up to %d, want %d and %d", median, nineInTen,
			maxMedianLines, maxNineInTenLines)
	}
}

// bad maps one wrong file each to the finding it must give, as "line: rule".
var bad = []struct{ path, source, want string }{
	{"store/a.go", "// Package store x.\npackage store\n\nimport _ \"example.org/m/kubelet\"\n", "4: imports point down"},
	{"actors/x/a.go", "// Package x x.\npackage x\n\nimport _ \"example.org/m/actors/node\"\n", "4: imports point down"},
	{"kubelet/a.go", "// Package kubelet x.\npackage kubelet\n\nimport _ \"example.org/m/test/registry\"\n", "4: imports point down"},
	{"kubelet/a.go", "// Package kubelet x.\npackage kubelet\n\nimport _ \"go.etcd.io/bbolt\"\n", "4: one folder per engine"},
	{"store/a.go", "// Package store x.\npackage store\n\nimport _ \"github.com/asynkron/protoactor-go/actor\"\n", "4: one folder per engine"},
	{"actors/x/a.go", "// Package x x.\npackage x\n\nfunc f() { go f() }\n", "4: goroutines and clocks"},
	{"actors/x/a.go", "// Package x x.\npackage x\n\nimport c \"time\"\n\nvar now = c.Now\n", "6: goroutines and clocks"},
	{"actors/x/a.go", "// Package x x.\npackage x\n\nimport _ \"math/rand/v2\"\n", "4: goroutines and clocks"},
	{"actors/x/a.go", receiving("<-m.(chan int)"), "6: nothing blocks in Receive"},
	{"actors/x/a.go", receiving("select {\n\tcase <-m.(chan int):\n\t}"), "6: nothing blocks in Receive"},
	{"actors/x/a.go", "// Package x x.\npackage x\n\nvar h = supervision.HandlerFunc(func(c C, m any) error {\n\t<-c.d\n\treturn nil\n})\n", "5: nothing blocks in Receive"},
	{"actors/x/a.go", receiving("time.Sleep(1)"), "6: nothing blocks in Receive"},
	{"actors/x/a.go", receiving("http.Get(\"x\")"), "6: nothing blocks in Receive"},
	{"actors/x/a.go", receiving("t.wg.Wait()"), "6: nothing blocks in Receive"},
	{"actors/x/a.go", receiving("t.mu.Lock()"), "6: nothing blocks in Receive"},
	{"actors/x/a.go", receiving("t.help()\n\treturn nil\n}\n\nfunc (t *T) help() error {\n\t<-t.c"), "11: nothing blocks in Receive"},
	{"actors/x/a.go", "package x\n", "1: package sentence"},
	{"actors/x/a.go", "// This is x.\npackage x\n", "2: package sentence"},
	{"cmd/x/a.go", "// Package main x.\npackage main\n", "2: package sentence"},
	{"store/a.go", "// Package store x.\npackage store\n", "1: manual of a top folder"},
	{"actors/x/a.go", "// Package x x.\npackage x\n\nfunc F() {}\n", "4: documented names"},
	{"actors/x/a.go", "// Package x x.\npackage x\n\ntype t int\n\n// T is.\ntype T[K any] int\n\nfunc (t) F() {}\nfunc (*T[K]) G() {}\n", "10: documented names"},
	{"actors/x/a.go", "// Package x x.\npackage x\n\n// Types.\ntype (\n\tT int\n)\n", "6: documented names"},
	{"actors/x/a.go", "// Package x x.\npackage x\n\nconst C = 1\n", "4: documented names"},
	{"actors/x/a.go", "// Package x x.\npackage x\n\nimport \"errors\"\n\n// ErrX is an error.\nvar ErrX = errors.New(\"x\")\n", "7: sentinel sentence"},
	{"actors/x/a.go", "// Package x x.\npackage x\n\nimport \"fmt\"\n\nvar x = fmt.Errorf(\"failed to x\")\n", "6: error text"},
	{"actors/x/a.go", "// Package x x.\npackage x\n\nimport \"fmt\"\n\nvar x = fmt.Errorf(\"Cannot x\")\n", "6: error text"},
	{"actors/x/a.go", "// Package x x.\npackage x\n\nimport \"fmt\"\n\nvar x = fmt.Errorf(\"cannot x.\")\n", "6: error text"},
	{"actors/x/a_test.go", "package x\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) { t.Skip() }\n", "5: skips say why"},
	{"actors/x/a.go", "// Package x x.\npackage x\n\n// TO" + "DO: more\n", "4: no unfinished work"},
	{"actors/x/a.go", "// Package x x.\npackage x\n\nvar x = \"/wo" + "rk/main\"\n", "4: no private places"},
	{"actors/x/a.go", "// Package x x.\npackage x\n\n// See absent" + ".md.\n", "4: mentions can be followed"},
	{"actors/x/a.go", "// Package x x.\npackage x\n\n// For issue " + "#7.\n", "4: mentions can be followed"},
	{"actors/x/a.go", "// Package x x.\npackage x\n\nfunc f() {\n" + strings.Repeat("\n", 90) + "}\n", "4: function length"},
}

// receiveMethods are the actors' methods that the rule about blocking looks at.
func receiveMethods(tree *Tree) (all []methodKey) {
	for key, m := range methodsOf(tree) {
		if isReceive(m.fn) {
			all = append(all, key)
		}
	}
	return all
}

// receiving is an actor whose Receive does something.
func receiving(what string) string {
	return "// Package x x.\npackage x\n\nimport (\"net/http\"; \"time\")\n" +
		"func (t *T) Receive(ctx C, m any) error {\n\t" + what + "\n\treturn nil\n}\n"
}

// TestP74_NothingBlocksInReceive holds what an actor may write: a poll, a job, a function for later.
func TestP74_NothingBlocksInReceive(t *testing.T) {
	for _, fine := range []string{
		"select {\n\tcase <-m.(chan int):\n\tdefault:\n\t}",
		"ctx.Go(func() { <-t.c; time.Sleep(1); t.wg.Wait() })",
		"t.next.Receive(ctx, m)",
		"http.NewRequest(\"x\", \"y\", nil)",
	} {
		tree := &Tree{Module: "example.org/m", Tracked: map[string][]byte{}, fset: token.NewFileSet()}
		if err := tree.add("actors/x/a.go", []byte(receiving(fine))); err != nil {
			t.Fatal(err)
		}
		if found := receives(tree); len(found) > 0 {
			t.Errorf("%s: %v", fine, found)
		}
	}
}

func TestRulesBite(t *testing.T) {
	bitten := map[string]bool{}
	for _, b := range bad {
		tree := &Tree{Module: "example.org/m", Tracked: map[string][]byte{}, fset: token.NewFileSet()}
		if err := tree.add(b.path, []byte(b.source)); err != nil {
			t.Fatal(err)
		}
		wantLine, rule, _ := strings.Cut(b.want, ": ")
		bitten[rule] = true
		found := false
		for _, f := range Check(tree) {
			found = found || f.Rule == rule && strings.HasPrefix(f.String(), strings.Join([]string{f.Path, wantLine}, ":")+":")
		}
		if !found {
			t.Errorf("%s:\n%s\ngives %v, want %q", b.path, b.source, Check(tree), b.want)
		}
	}
	for _, rule := range All() {
		if !bitten[rule.Name] {
			t.Errorf("rule %q has no wrong example", rule.Name)
		}
	}
}

// What is right must not be found fault with.
func TestGoodFileHasNoFindings(t *testing.T) {
	tree := &Tree{Module: "example.org/m", Tracked: map[string][]byte{}, fset: token.NewFileSet()}
	files := map[string]string{
		"store/doc.go": "// Package store keeps things.\npackage store\n\nimport (\n\t\"errors\"\n\t\"time\"\n\n\t_ \"example.org/m/supervision\"\n" +
			"\t_ \"go.etcd.io/bbolt\"\n)\n\n// ErrGone is returned when a thing is gone.\nvar ErrGone = errors.New(\"gone\")\n\n" +
			"// Wait bounds.\nconst Wait = time.Second\n\n// F does.\nfunc F() error { return errors.New(\"cannot do: TLS missing\") }\n",
		"supervision/doc.go": "// Package supervision guards.\npackage supervision\n\nimport \"time\"\n\nfunc f() { go f(); time.Now() }\n",
		"cmd/x/main.go":      "// Command x runs.\npackage main\n\nimport _ \"example.org/m/store\"\n\nfunc main() {}\n",
	}
	for path, source := range files {
		if err := tree.add(path, []byte(source)); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range Check(tree) {
		t.Error(f)
	}
}
