package rules

import (
	"bytes"
	"go/ast"
	"go/token"
	"maps"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// weakStarts begin errors that should begin with "cannot", or that repeat that there is an error.
var weakStarts = []string{"failed ", "could not ", "couldn't ", "unable to ", "error ", "can't ", "can not "}

// upstreamTexts begin texts that a user of Kubernetes knows word for word from statuses and events; they stay as they are.
var upstreamTexts = []string{
	"couldn't find key ", "Failed to create pod sandbox", "Failed to apply default image tag", "Container image ", "unable to transform key",
}

// errorText finds error texts that do not read well after a colon: capitals, full stops, weak starts.
func errorText(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		if f.Test {
			continue
		}
		ast.Inspect(f.Syntax, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			if text, ok := errorLiteral(f.Syntax, call); ok {
				if fault := textFault(text); fault != "" {
					found = append(found, f.at(call, "error text %q %s", text, fault))
				}
			}
			return true
		})
	}
	return found
}

// errorLiteral gives the text of errors.New("…") and fmt.Errorf("…").
func errorLiteral(file *ast.File, call *ast.CallExpr) (string, bool) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return "", false
	}
	pkg, ok := sel.X.(*ast.Ident)
	isNew := ok && sel.Sel.Name == "New" && pkg.Name == localName(file, "errors")
	isErrorf := ok && sel.Sel.Name == "Errorf" && pkg.Name == localName(file, "fmt")
	lit, ok := call.Args[0].(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING || !isNew && !isErrorf {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

func textFault(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	second, _ := utf8.DecodeRuneInString(text[size:])
	switch {
	case slices.ContainsFunc(upstreamTexts, func(known string) bool { return strings.HasPrefix(text, known) }):
		return ""
	case text == "":
		return "is empty"
	case unicode.IsUpper(first) && unicode.IsLower(second) && !isName(text):
		return "begins with a capital"
	case strings.HasSuffix(text, ".") || strings.HasSuffix(text, "!") || strings.HasSuffix(text, "\n"):
		return "ends like a sentence"
	}
	for _, weak := range weakStarts {
		if strings.HasPrefix(text, weak) {
			return "begins with " + strconv.Quote(weak) + `, want "cannot"`
		}
	}
	return ""
}

// isName reports whether a text begins with a name that is written with capitals inside, as a kind or a field of the API.
func isName(text string) bool {
	word, _, _ := strings.Cut(text, " ")
	return slices.ContainsFunc([]rune(word[1:]), unicode.IsUpper) || slices.Contains(apiKinds, word)
}

// apiKinds are the one-word kinds of the API that error texts begin with.
var apiKinds = []string{"Pod", "Pods", "Node", "Deployment", "Secret", "Service", "Lease", "Event", "Job", "Status", "Namespace"}

// skips finds skipped tests that do not print why.
func skips(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		ast.Inspect(f.Syntax, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && len(call.Args) == 0 && isSkip(sel) {
				found = append(found, f.at(call, "a test is skipped without a printed reason"))
			}
			return true
		})
	}
	return found
}

// isSkip recognises the methods of a test by the names tests are known by.
func isSkip(sel *ast.SelectorExpr) bool {
	test, ok := sel.X.(*ast.Ident)
	return ok && slices.Contains([]string{"t", "b", "tb", "f"}, test.Name) &&
		slices.Contains([]string{"Skip", "SkipNow"}, sel.Sel.Name)
}

// The words are put together here so that this file does not contain them.
var unfinishedWords = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b|(?i:not (yet )?implement` + `ed)`)

// textExtensions are the kinds of tracked files in which words are looked for.
var textExtensions = []string{".go", ".md", ".sh", ".c", ".h", ".yaml", ".yml", ".txt", ""}

// unfinished finds marks of unfinished work.
func unfinished(t *Tree) []Finding {
	return t.grep(func(line []byte) string {
		if word := unfinishedWords.Find(line); word != nil {
			return "unfinished work: " + string(word)
		}
		return ""
	})
}

// developmentPlaces are where the tree was developed.
var developmentPlaces = []string{"/wo" + "rk/main", "/wo" + "rk/plan", "/wo" + "rk/shared", "/wo" + "rk/.lib"}

// privatePlaces finds paths and hosts that exist only where the tree was developed or is being tested.
func privatePlaces(t *Tree) []Finding {
	places := append(machinePlaces(), developmentPlaces...)
	if len(t.Root) > len("/") {
		places = append(places, t.Root+"/")
	}
	return t.grep(func(line []byte) string {
		for _, place := range places {
			if bytes.Contains(line, []byte(place)) {
				return "a place of one machine: " + place
			}
		}
		return ""
	})
}

// machinePlaces are the hosts this machine fetches modules from, other than the public ones, and its module cache.
func machinePlaces() []string {
	var places []string
	if out, err := run("go", "env", "GOMODCACHE"); err == nil {
		if dir := strings.TrimSpace(string(out)); len(dir) > len("/") {
			places = append(places, dir)
		}
	}
	out, _ := run("go", "env", "GOPROXY", "GOSUMDB")
	for _, word := range strings.FieldsFunc(string(out)+" "+os.Getenv("HTTPS_PROXY")+" "+os.Getenv("https_proxy"), isSeparator) {
		u, err := url.Parse(word)
		if err == nil && u.Hostname() != "" && !slices.Contains(publicHosts, u.Hostname()) {
			places = append(places, u.Hostname())
		}
	}
	return places
}

// publicHosts may be named: everybody can reach them, or everybody is them.
var publicHosts = []string{"proxy.golang.org", "sum.golang.org", "goproxy.io", "localhost", "127.0.0.1"}

func isSeparator(r rune) bool { return unicode.IsSpace(r) || r == ',' || r == '|' }

// grep looks at every line of every tracked text file.
func (t *Tree) grep(fault func(line []byte) string) []Finding {
	var found []Finding
	for _, name := range slices.Sorted(maps.Keys(t.Tracked)) {
		if !slices.Contains(textExtensions, path.Ext(name)) {
			continue
		}
		for i, line := range bytes.Split(t.Tracked[name], []byte("\n")) {
			if text := fault(line); text != "" {
				found = append(found, Finding{Path: name, Line: i + 1, Text: text})
			}
		}
	}
	return found
}
