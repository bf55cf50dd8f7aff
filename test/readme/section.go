package readme

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Section is a part of a document with blocks of code.
type Section struct {
	// Steps are what the reader does, in order.
	Steps []Step
	// Files are the Go files among them, by their paths.
	Files map[string]string
}

// Step is a file to write, or a command when there is no path: a line that a here-document follows has that with it.
type Step struct{ Path, Text string }

var (
	block    = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")
	fileName = regexp.MustCompile("`([a-z_/]+\\.go)`")
)

// Read finds the section of a title in a document. A Go block is the file that was named last before it.
func Read(document, title string) (Section, error) {
	text, err := os.ReadFile(document)
	if err != nil {
		return Section{}, err
	}
	_, section, found := strings.Cut(string(text), "\n## "+title+"\n")
	if !found {
		return Section{}, fmt.Errorf("cannot find section %q in %s", title, document)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	s := Section{Files: map[string]string{}}
	last := 0
	for _, at := range block.FindAllStringSubmatchIndex(section, -1) {
		before, language, code := section[last:at[0]], section[at[2]:at[3]], section[at[4]:at[5]]
		last = at[1]
		if language != "go" {
			for _, one := range commands(code) {
				s.Steps = append(s.Steps, Step{Text: one})
			}
			continue
		}
		names := fileName.FindAllStringSubmatch(before, -1)
		if len(names) == 0 {
			return Section{}, fmt.Errorf("cannot tell which file this is:\n%s", code)
		}
		path := names[len(names)-1][1]
		s.Files[path] = code
		s.Steps = append(s.Steps, Step{path, code})
	}
	return s, nil
}

// commands splits a block into commands.
func commands(code string) (all []string) {
	lines := strings.SplitAfter(code, "\n")
	for i := 0; i < len(lines); i++ {
		one := lines[i]
		if _, end, here := strings.Cut(strings.TrimSpace(one), "<<"); here {
			for i++; i < len(lines); i++ {
				one += lines[i]
				if strings.TrimSpace(lines[i]) == end {
					break
				}
			}
		}
		if strings.TrimSpace(one) != "" {
			all = append(all, one)
		}
	}
	return all
}

// Overlay writes the section's files into a folder, and there a file for the -overlay flag of the go command, by which it finds them where
// the reader would have put them, below root. It returns the path of that file.
func (s Section) Overlay(root, folder string) (string, error) {
	replace := map[string]string{}
	for name, code := range s.Files {
		real := filepath.Join(folder, strings.ReplaceAll(name, "/", "-"))
		if err := os.WriteFile(real, []byte(code), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, name)] = real
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(folder, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// Copy copies a tree without its history and what was built in it.
func Copy(root, to string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		switch {
		case inside == ".git", inside == "bin":
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, inside), 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, inside), content, 0o600)
	})
}
