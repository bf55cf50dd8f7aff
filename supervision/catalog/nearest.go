package catalog

import (
	"cmp"
	"slices"
	"strings"
)

const (
	// suggestions is how many near misses are named.
	suggestions = 3
	// farthest is the share of a word that may differ for the other to be meant.
	farthest = 0.4
)

// DidYouMean is "; did you mean A or B?" with what is nearest to a word that is not there,
// or nothing when nothing is near.
func DidYouMean(word string, there []string) string {
	if near := Nearest(word, there); len(near) > 0 {
		return "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return ""
}

// Nearest returns what a misspelt word may have meant, the likeliest first. Of a path, the
// last part alone may have been given.
func Nearest(word string, there []string) []string {
	type near struct {
		name string
		far  float64
	}
	var found []near
	for _, name := range there {
		if far := distance(word, name); far <= farthest {
			found = append(found, near{name, far})
		}
	}
	slices.SortStableFunc(found, func(a, b near) int { return cmp.Compare(a.far, b.far) })
	var names []string
	for _, n := range found[:min(len(found), suggestions)] {
		// A far one beside a near one only confuses.
		if n.far <= 1.5*found[0].far+0.06 {
			names = append(names, n.name)
		}
	}
	return names
}

// distance is the share of the word that has to change to become the name, or the end of it.
func distance(word, name string) float64 {
	word, name = strings.ToLower(strings.Trim(word, "/")), strings.ToLower(name)
	if word == "" {
		return 1
	}
	best := float64(edits(word, name)) / float64(max(len(word), len(name)))
	for i := range len(name) {
		if name[i] == '/' {
			end := name[i+1:]
			// What was left out counts a little, so that a whole name wins.
			best = min(best, 0.05+float64(edits(word, end))/float64(max(len(word), len(end))))
		}
	}
	return best
}

// edits is how many letters have to be changed, put in, left out or swapped with their
// neighbour to turn a into b.
func edits(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			row[j+1] = min(last[j+1], row[j]) + 1
			if a[i] == b[j] {
				row[j+1] = min(row[j+1], last[j])
			} else {
				row[j+1] = min(row[j+1], last[j]+1)
			}
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
