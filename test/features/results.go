package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// modulePath begins the import paths of the module's packages.
const modulePath = "github.com/nodeactor/nodeactor/"

// event is one line of what `go test -json` writes.
type event struct {
	Action  string
	Package string `json:",omitempty"`
	Test    string `json:",omitempty"`
	Output  string `json:",omitempty"`
}

// result is how the runs of one test ended, its parts included.
type result struct{ passed, failed, skipped bool }

// missing says why a test proves nothing. A part that was skipped is one that proves nothing; where a test is run a second
// time, whole, that counts.
func (r result) missing() string {
	switch {
	case r.failed:
		return "failed"
	case r.passed:
		return ""
	case r.skipped:
		return "was skipped, at least in part"
	}
	return "was not run"
}

// readResults reads what show has kept of one or several runs.
func readResults(files []string) (map[string]result, error) {
	all := map[string]result{}
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("cannot read the results of the tests, which `make test` makes: %w", err)
		}
		err = addResults(all, file)
		file.Close()
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", name, err)
		}
	}
	return all, nil
}

// addResults adds those of one run. The parts of a test end before it does.
func addResults(all map[string]result, from io.Reader) error {
	partSkipped := map[string]bool{}
	return eachEvent(from, func(e event) error {
		top, _, isPart := strings.Cut(e.Test, "/")
		name := strings.TrimPrefix(e.Package, modulePath) + "." + top
		r := all[name]
		switch {
		case e.Action == "fail":
			r.failed = true
		case e.Action == "skip":
			r.skipped = true
			partSkipped[name] = true
		case e.Action == "pass" && !isPart && !partSkipped[name]:
			r.passed = true
		}
		if !isPart {
			delete(partSkipped, name)
		}
		all[name] = r
		return nil
	})
}

// eachEvent decodes a stream of events. What is no event is a fault: a line of it could have been a result.
func eachEvent(from io.Reader, do func(event) error) error {
	in := bufio.NewReader(from)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if err := json.Unmarshal(line, &e); err != nil {
				return fmt.Errorf("cannot decode %q: %w", line, err)
			}
			if err := do(e); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}
