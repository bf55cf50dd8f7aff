// Command features says which test proves which feature that nodeactor offers.
//
// The features are the rows of rows.yaml, F001 to F128. A row is proved by the tests whose names begin with its number, as
// TestF001_ does, and by those that the row names itself. A row without a reason to be open is claimed: it needs such a
// test, and after a whole run of the tests each of them must have passed.
//
//	features write              writes docs/features.md
//	features show FILE          reads what `go test -json` writes, shows what `go test` would, keeps the results in FILE
//	features check FILE...      says whether every claimed row was proved by these results
//
// show has the flag -v, which shows everything.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// page is the document about the features, from the module's root.
const page = "docs/features.md"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "features:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	command := ""
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	switch command {
	case "write":
		return write()
	case "show":
		return showInto(args, os.Stdin, os.Stdout)
	case "check":
		return check(args)
	}
	return errors.New("cannot tell what to do: give write, show FILE or check FILE")
}

// write makes the page anew.
func write() error {
	root, rows, tests, err := load()
	if err != nil {
		return err
	}
	if err := errors.Join(faults(rows, tests)...); err != nil {
		return err
	}
	file := filepath.Join(root, page)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, render(rows, tests), 0o644)
}

// check compares the results of a run with what is claimed.
func check(files []string) error {
	_, rows, tests, err := load()
	if err != nil {
		return err
	}
	results, err := readResults(files)
	if err != nil {
		return err
	}
	if err := errors.Join(append(faults(rows, tests), unproved(rows, tests, results)...)...); err != nil {
		return err
	}
	claimed := count(rows)
	fmt.Printf("features: %d of %d rows are proved by tests that passed, %d are open\n", claimed, len(rows), len(rows)-claimed)
	return nil
}

// load reads the rows and the names of the module's tests.
func load() (root string, rows []row, tests names, err error) {
	if root, err = moduleRoot(); err != nil {
		return "", nil, nil, err
	}
	if rows, err = parseRows(rowsFile); err != nil {
		return "", nil, nil, err
	}
	tests, err = testsIn(root)
	return root, rows, tests, err
}
