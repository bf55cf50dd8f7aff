package readme_test

import (
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/test/readme"
)

const (
	// fewLines is how long the operator and its fault test are together at most, fewAlone the program that runs it by itself, without the
	// lines that only say what it is.
	fewLines, fewAlone = 40, 30
	// thousandWithin bounds the simulation with a thousand nodes.
	thousandWithin = 30 * time.Second
)

// TestWriteAnOperator does what the manual tells in a copy of the tree, up to the node, which TestOperatorOfTheManual of the end-to-end tests
// does.
func TestWriteAnOperator(t *testing.T) {
	section, err := readme.Read("../../README.md", "Write an operator")
	if err != nil {
		t.Fatal(err)
	}
	formatted(t, section)
	short(t, section)
	clone := t.TempDir()
	if err := readme.Copy("../..", clone); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, step := range section.Steps {
		switch {
		case step.Path != "":
			write(t, filepath.Join(clone, step.Path), step.Text)
		case strings.Contains(step.Text, "mynode"):
		default:
			ran++
			t.Run(strings.TrimSpace(step.Text), func(t *testing.T) { run(t, clone, step.Text) })
		}
	}
	if ran != 5 {
		t.Errorf("%d commands were run", ran)
	}
}

// write is what the reader does in an editor.
func write(t *testing.T, path, text string) {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run runs one command.
func run(t *testing.T, clone, command string) {
	cmd := exec.Command("sh", "-ec", command)
	cmd.Dir = clone
	began := time.Now()
	out, err := cmd.CombinedOutput()
	// timeout says by 124 that it ended the program, as it is to do.
	if code := cmd.ProcessState.ExitCode(); err != nil && (code != 124 || !strings.HasPrefix(command, "timeout")) {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s\n%s", time.Since(began).Round(time.Millisecond), out)
	if strings.HasPrefix(command, "timeout") && !strings.Contains(string(out), `ada is Ready: "hello Ada"`) {
		t.Errorf("it says\n%s", out)
	}
	if strings.Contains(command, "Thousand") {
		judgeThousand(t, cmd.ProcessState)
	}
}

// judgeThousand holds the simulation to its time. On a machine that does other things too, what counts is the time its two workers computed.
func judgeThousand(t *testing.T, p *os.ProcessState) {
	computed := (p.UserTime() + p.SystemTime()) / 2
	t.Logf("the simulation took %s of two processors, its build included", computed.Round(time.Millisecond))
	if computed > thousandWithin {
		t.Errorf("the simulation took longer than %s", thousandWithin)
	}
}

// formatted holds that the files are as gofmt would have them.
func formatted(t *testing.T, s readme.Section) {
	if len(s.Files) != 5 {
		t.Errorf("the section has %d files", len(s.Files))
	}
	for name, code := range s.Files {
		if good, err := format.Source([]byte(code)); err != nil || string(good) != code {
			t.Errorf("%s is not formatted: %v", name, err)
		}
	}
}

// short holds that an operator with its fault test takes few lines.
func short(t *testing.T, s readme.Section) {
	if n := lines(s.Files["greeter/greeter.go"]) + lines(s.Files["greeter/greeter_test.go"]); n > fewLines {
		t.Errorf("the operator and its test have %d lines", n)
	}
	if n := lines(s.Files["greeter/alone/main.go"]); n > fewAlone {
		t.Errorf("the program has %d lines", n)
	}
}

// lines counts what is neither empty nor a comment.
func lines(code string) (n int) {
	for line := range strings.Lines(code) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}
