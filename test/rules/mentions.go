package rules

import (
	"path"
	"regexp"
)

var (
	documentName = regexp.MustCompile(`\b[A-Za-z0-9_./-]+\.md\b`)
	issueNumber  = regexp.MustCompile(`(?i)\b(issue|ticket|pull request)s? #?[0-9]+\b`)
)

// mentions finds references that a reader of the tree cannot follow: documents that are not in it, numbers of issues.
func mentions(t *Tree) []Finding {
	documents := map[string]bool{}
	for name := range t.Tracked {
		documents[path.Base(name)] = true
	}
	return t.grep(func(line []byte) string {
		for _, name := range documentName.FindAll(line, -1) {
			if !documents[path.Base(string(name))] {
				return "a document that is not in the tree: " + string(name)
			}
		}
		if number := issueNumber.Find(line); number != nil {
			return "a number that says nothing to a reader: " + string(number)
		}
		return ""
	})
}
