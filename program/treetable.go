package program

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/nodeactor/nodeactor/actors/node"
)

// table draws a list: a line with the names of the columns, then one for each actor.
func table(list node.ActorList, wide bool) []string {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	head := []string{"PATH", "ROW", "STATE", "GEN", "RESTARTS", "MAILBOX", "OLDEST", "LAST FAULT", "CPU", "LEASE", "NEXT TRY"}
	if wide {
		head = append(head, "KIND", "SINCE", "HANDLED", "JOBS", "BUSY WITH", "ERROR")
	}
	fmt.Fprintln(t, strings.Join(head, "\t"))
	for _, a := range list.Actors {
		fmt.Fprintln(t, strings.Join(cells(a, list.At, wide), "\t"))
	}
	t.Flush()
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

func cells(a node.ActorLine, now time.Time, wide bool) []string {
	out := []string{
		a.Path, rowText(a), stateText(a), fmt.Sprint(a.Generation), fmt.Sprint(a.Restarts), fmt.Sprint(a.Mailbox),
		secondsText(a.OldestSeconds), faultText(a.LastFault, now), cpuText(a.CPU), cmp.Or(a.Lease, "-"), nextText(a.NextTry, now),
	}
	if wide {
		out = append(out, a.Kind, sinceText(a.Since, now), fmt.Sprint(a.Handled), fmt.Sprint(a.Jobs), busyText(a), errorText(a.LastFault))
	}
	return out
}

func rowText(a node.ActorLine) string {
	if a.Kind != node.KindPool {
		return a.Row
	}
	n := 0
	for _, count := range a.Members {
		n += count
	}
	return fmt.Sprintf("%s (%d)", a.Row, n)
}

// stateText adds what is wrong beside the state.
func stateText(a node.ActorLine) string {
	s := a.State
	if a.Hung {
		s += ", hung"
	}
	for _, state := range slices.Sorted(maps.Keys(a.Members)) {
		if state != "running" {
			s += fmt.Sprintf(", %d %s", a.Members[state], state)
		}
	}
	if a.Abandoned > 0 {
		s += fmt.Sprintf(", %d abandoned", a.Abandoned)
	}
	return s
}

func secondsText(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d <= 0:
		return "-"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	}
	return duration.HumanDuration(d)
}

func faultText(f *node.FaultLine, now time.Time) string {
	if f == nil {
		return "-"
	}
	return fmt.Sprintf("%s %s %s", f.Kind, duration.HumanDuration(max(now.Sub(f.At), 0)), f.Hash)
}

func errorText(f *node.FaultLine) string {
	if f == nil {
		return "-"
	}
	return shorten(oneLine(f.Error), 80)
}

func cpuText(share *float64) string {
	if share == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100**share)
}

func nextText(next *time.Time, now time.Time) string {
	if next == nil {
		return "-"
	}
	return "in " + secondsText(max(next.Sub(now), time.Millisecond).Seconds())
}

func sinceText(since *time.Time, now time.Time) string {
	if since == nil {
		return "-"
	}
	return duration.HumanDuration(max(now.Sub(*since), 0))
}

func busyText(a node.ActorLine) string {
	if a.BusyWith == "" {
		return "-"
	}
	return a.BusyWith + " " + secondsText(a.BusySeconds)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// shorten cuts a text to n characters.
func shorten(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:max(n-1, 0)]) + "…"
}

// sortActors orders by one column, the largest or latest first; "tree" keeps the order of
// the tree.
func sortActors(lines []node.ActorLine, key string) {
	by := map[string]func(a node.ActorLine) float64{
		"cpu": func(a node.ActorLine) float64 {
			if a.CPU == nil {
				return 0
			}
			return *a.CPU
		},
		"mailbox":  func(a node.ActorLine) float64 { return float64(a.Mailbox) },
		"oldest":   func(a node.ActorLine) float64 { return a.OldestSeconds },
		"restarts": func(a node.ActorLine) float64 { return float64(a.Restarts) },
		"fault": func(a node.ActorLine) float64 {
			if a.LastFault == nil {
				return 0
			}
			return float64(a.LastFault.At.UnixMilli())
		},
	}[key]
	if by != nil {
		slices.SortStableFunc(lines, func(a, b node.ActorLine) int { return cmp.Compare(by(b), by(a)) })
	}
}
