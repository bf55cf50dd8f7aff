package strategy

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// maxIndex bounds the indexes of names that are reckoned with; what looks like more is just a name.
const maxIndex = 1_000_000_000

// indexOf gives N of a name rN that the generator may have made.
func indexOf(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, "r")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n >= 1 && n <= maxIndex && strconv.Itoa(n) == digits
}

// namer makes names for new replicas: r1, r2 and so on, past the highest index there is.
type namer struct {
	next  int
	taken map[string]bool
}

func newNamer(s State) *namer {
	n := &namer{next: 1, taken: make(map[string]bool, len(s.Replicas)+len(s.Taken))}
	for _, r := range s.Replicas {
		n.take(r.Name)
	}
	for _, name := range s.Taken {
		n.take(name)
	}
	return n
}

func (n *namer) take(name string) {
	n.taken[name] = true
	if i, ok := indexOf(name); ok {
		n.next = max(n.next, i+1)
	}
}

func (n *namer) name() string {
	for {
		name := "r" + strconv.Itoa(n.next)
		n.next++
		if !n.taken[name] {
			return name
		}
	}
}

// older orders replicas by their index, and those without one behind, by name.
func older(a, b Replica) int {
	i, oka := indexOf(a.Name)
	j, okb := indexOf(b.Name)
	switch {
	case oka && okb && i != j:
		return cmp.Compare(i, j)
	case oka != okb && oka:
		return -1
	case oka != okb:
		return 1
	}
	return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
}

// sortReplicas gives the replicas in order, in a slice of their own.
func sortReplicas(replicas []Replica) []Replica {
	sorted := slices.Clone(replicas)
	slices.SortFunc(sorted, older)
	return sorted
}
