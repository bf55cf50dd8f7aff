package harness_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/nodeactor/nodeactor/supervision/core/play"
	"github.com/nodeactor/nodeactor/test/harness"
)

// TestPlayGroups replays the transcripts of the supervision core.
func TestPlayGroups(t *testing.T) {
	harness.Play(t, "../../supervision/core/testdata/*.play", play.Group)
}

// adder is a core of somebody else's.
type adder struct{ sum int }

func (a *adder) Line(words []string) ([]string, error) {
	if words[0] != "add" {
		return nil, errors.New("only add is known")
	}
	n, err := strconv.Atoi(words[1])
	a.sum += n
	return []string{fmt.Sprint("= ", a.sum)}, err
}

// TestPlayOwnCore replays the transcripts of any core.
func TestPlayOwnCore(t *testing.T) {
	harness.Play(t, "testdata/*.play", func() harness.Player { return &adder{} })
}

// TestPlayRefuses holds that wrong answers and unknown words are told apart from right ones.
func TestPlayRefuses(t *testing.T) {
	got, err := play.Run([]byte("add 1\n    = 7\nadd 2\n"), &adder{})
	if want := "add 1\n    = 1\nadd 2\n    = 3\n"; string(got) != want || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	for _, script := range []string{"sub 1", "add x"} {
		if _, err := play.Run([]byte(script), &adder{}); err == nil {
			t.Errorf("%q can be played", script)
		}
	}
	for _, script := range []string{"group nothing", "group one_for_one max=x", "child a what", "child a panic=laugh", "0s laugh", "soon start"} {
		if _, err := play.Run([]byte(script), play.Group()); err == nil {
			t.Errorf("%q can be played", script)
		}
	}
}
