package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// showInto shows a run of the tests and keeps the results of each in a file.
func showInto(args []string, from io.Reader, to io.Writer) error {
	flags := flag.NewFlagSet("show", flag.ContinueOnError)
	verbose := flags.Bool("v", false, "show what passing tests print, too")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("cannot keep the results: give one file for them")
	}
	if err := os.MkdirAll(filepath.Dir(flags.Arg(0)), 0o755); err != nil {
		return err
	}
	file, err := os.Create(flags.Arg(0))
	if err != nil {
		return err
	}
	return errors.Join(show(from, to, file, *verbose), file.Close())
}

// shower is one run that is shown.
type shower struct {
	to      io.Writer
	keep    *json.Encoder
	verbose bool
	said    map[string]map[string][]line // by package and test: what may still have to be shown
	lines   int
	failed  bool
}

// line is a piece of what was printed, with its place among all.
type line struct {
	place int
	text  string
}

// show passes on what a person wants to read: a line for each package, what failed with all it said, what was skipped and why.
func show(from io.Reader, to, keep io.Writer, verbose bool) error {
	s := &shower{to: to, keep: json.NewEncoder(keep), verbose: verbose, said: map[string]map[string][]line{}}
	if err := eachEvent(from, s.take); err != nil {
		return err
	}
	for pkg := range s.said {
		s.tell(pkg) // a package that never ended
	}
	if s.failed {
		return errors.New("a test failed")
	}
	return nil
}

func (s *shower) take(e event) error {
	switch e.Action {
	case "output":
		s.hear(e)
	case "build-output":
		fmt.Fprint(s.to, e.Output)
	case "pass", "fail", "skip":
		s.failed = s.failed || e.Action == "fail"
		if e.Test == "" {
			s.endPackage(e)
			return nil
		}
		s.endTest(e)
		return s.keep.Encode(e)
	}
	return nil
}

func (s *shower) hear(e event) {
	if s.verbose {
		fmt.Fprint(s.to, e.Output)
		return
	}
	if s.said[e.Package] == nil {
		s.said[e.Package] = map[string][]line{}
	}
	s.lines++
	s.said[e.Package][e.Test] = append(s.said[e.Package][e.Test], line{s.lines, e.Output})
}

// endTest keeps what a test said that failed. The reason why one was skipped is shown at once.
func (s *shower) endTest(e event) {
	if e.Action == "skip" {
		s.print(s.said[e.Package][e.Test])
	}
	if e.Action != "fail" {
		delete(s.said[e.Package], e.Test)
	}
}

// endPackage shows all that is kept, or the last line of a package that passed.
func (s *shower) endPackage(e event) {
	if own := s.said[e.Package][""]; e.Action != "fail" && len(own) > 0 {
		s.said[e.Package] = map[string][]line{"": own[len(own)-1:]}
	}
	s.tell(e.Package)
}

// tell shows what is kept of a package, in the order in which it was printed.
func (s *shower) tell(pkg string) {
	all := slices.Concat(slices.Collect(maps.Values(s.said[pkg]))...)
	slices.SortFunc(all, func(a, b line) int { return a.place - b.place })
	s.print(all)
	delete(s.said, pkg)
}

func (s *shower) print(lines []line) {
	for _, l := range lines {
		if !strings.HasPrefix(l.text, "=== ") {
			fmt.Fprint(s.to, l.text)
		}
	}
}
