// Package websites is an operator that publishes small websites: each Website becomes a folder of HTML files, stays as it was declared
// whatever happens to the files, and is taken away with its manifest.
//
// The same operator runs by itself (standalone), as a kind of a node's API (node) and under test (websites_test.go).
package websites

import (
	"context"
	"errors"
	"fmt"
	"html"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/nodeactor/nodeactor/actors/operator"
)

// Website is what a user declares.
type Website struct {
	Title string `json:"title"`
	// Pages are the texts of the pages by their names.
	Pages map[string]string `json:"pages"`
}

// Kind implements operator.Specification.
func (Website) Kind() string { return "Website" }

// Status is what the operator says of a website.
type Status struct {
	// Folder is where it is, Pages how many pages it has.
	Folder string `json:"folder"`
	Pages  int    `json:"pages"`
}

// ErrPageName is returned when a page cannot be a file. Nothing is published then.
var ErrPageName = errors.New("a page is named by lower case letters, digits and dashes")

var pageName = regexp.MustCompile(`^[a-z0-9-]+$`)

// Publisher is the operator.
type Publisher struct {
	// Folder holds the folders of all websites.
	Folder string
}

// Reconcile publishes a website, or mends what is not as it was declared.
func (p Publisher) Reconcile(ctx context.Context, s *operator.ManifestState[Website]) (operator.Action, error) {
	site, folder := s.Manifest.Spec, p.folder(s)
	for name := range site.Pages {
		if !pageName.MatchString(name) {
			return operator.None(), fmt.Errorf("cannot publish page %q: %w", name, ErrPageName)
		}
	}
	// Whoever was given up, or has lost the lease, must not touch the files any more.
	if err := operator.Fenced(ctx); err != nil {
		return operator.None(), err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return operator.None(), err
	}
	for _, name := range slices.Sorted(maps.Keys(site.Pages)) {
		if err := write(filepath.Join(folder, name+".html"), page(site.Title, site.Pages[name])); err != nil {
			return operator.None(), err
		}
	}
	if err := prune(folder, site.Pages); err != nil {
		return operator.None(), err
	}
	return operator.None(), s.SetStatus(Status{Folder: folder, Pages: len(site.Pages)})
}

// Finalize takes a website away.
func (p Publisher) Finalize(ctx context.Context, s *operator.ManifestState[Website]) error {
	if err := operator.Fenced(ctx); err != nil {
		return err
	}
	return os.RemoveAll(p.folder(s))
}

func (p Publisher) folder(s *operator.ManifestState[Website]) string {
	return filepath.Join(p.Folder, s.Manifest.Namespace, s.Manifest.Name)
}

// page is the HTML of a page.
func page(title, text string) string {
	return fmt.Sprintf("<!doctype html>\n<meta charset=utf-8>\n<title>%s</title>\n<h1>%[1]s</h1>\n<p>%s</p>\n", html.EscapeString(title), html.EscapeString(text))
}

// write writes a file that says something else, in one step: a reader sees the old page or the new one.
func write(path, content string) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == content {
		return nil
	}
	if err := os.WriteFile(path+".new", []byte(content), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// prune removes what is no page.
func prune(folder string, pages map[string]string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, isPage := trimmed(e.Name())
		if _, wanted := pages[name]; !isPage || !wanted {
			if err := os.RemoveAll(filepath.Join(folder, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// trimmed is the name of the page that a file holds.
func trimmed(file string) (name string, isPage bool) {
	ext := filepath.Ext(file)
	return file[:len(file)-len(ext)], ext == ".html"
}
