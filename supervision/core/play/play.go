// Package play runs transcripts of pure cores: text files of what happened, with what the core
// answered written below each line, indented.
package play

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
)

// indent marks answers.
const indent = "    "

// Player takes the lines of one transcript, in order.
type Player interface {
	// Line takes the words of one line and returns the answers to it.
	Line(words []string) (answers []string, err error)
}

// Run plays a transcript: it returns the script with the player's answers in place of those
// that were written in it. Empty lines and those that begin with # are kept as they are.
func Run(script []byte, p Player) ([]byte, error) {
	var out bytes.Buffer
	lines := bufio.NewScanner(bytes.NewReader(script))
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if strings.HasPrefix(line, indent) {
			continue
		}
		fmt.Fprintln(&out, line)
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		answers, err := p.Line(words)
		if err != nil {
			return nil, fmt.Errorf("line %d: cannot play %q: %w", n, line, err)
		}
		for _, a := range answers {
			fmt.Fprintln(&out, indent+a)
		}
	}
	return out.Bytes(), lines.Err()
}
