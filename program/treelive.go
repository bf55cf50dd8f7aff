package program

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/nodeactor/nodeactor/actors/node"
)

// What the terminal is told.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
	reversed    = "\x1b[7m"
	plain       = "\x1b[0m"
)

// shortestPath is how much of a path is always shown.
const shortestPath = 32

// liveKeys are the keys that sort, by the column they sort by.
var liveKeys = map[byte]string{'t': "tree", 'c': "cpu", 'm': "mailbox", 'o': "oldest", 'r': "restarts", 'f': "fault"}

// screen is the live picture: what was last seen, and how it is shown.
type screen struct {
	query node.ActorQuery
	sort  string
	list  node.ActorList
	err   error
	held  bool
	top   int
	// escape collects an arrow key, which arrives as several bytes.
	escape []byte
}

// key takes one byte from the keyboard; ask tells that a new picture is wanted at once.
func (s *screen) key(b byte) (quit, ask bool) {
	if len(s.escape) > 0 || b == 0x1b {
		s.arrow(b)
		return false, false
	}
	switch sort, known := liveKeys[b]; {
	case known:
		s.sort = sort
	case b == 'q':
		return true, false
	case b == 'a':
		s.query.All = !s.query.All
		return false, true
	case b == ' ':
		s.held = !s.held
	case b == 'j':
		s.top++
	case b == 'k':
		s.top--
	}
	return false, false
}

func (s *screen) arrow(b byte) {
	s.escape = append(s.escape, b)
	if len(s.escape) < 3 {
		return
	}
	switch string(s.escape) {
	case "\x1b[A":
		s.top--
	case "\x1b[B":
		s.top++
	}
	s.escape = nil
}

// draw is the picture for a terminal of a size.
func (s *screen) draw(width, height int) string {
	lines := []string{shorten(s.summary(), width), shorten(s.list.Note, width)}
	list := s.list
	list.Actors = append([]node.ActorLine(nil), s.list.Actors...)
	sortActors(list.Actors, s.sort)
	rows := s.rows(list, width)
	s.top = max(min(s.top, len(rows)-1-(height-3)), 0)
	lines = append(lines, reversed+shorten(rows[0], width)+plain)
	for _, row := range rows[1+s.top:] {
		if len(lines) == height {
			break
		}
		lines = append(lines, shorten(row, width))
	}
	return home + strings.Join(lines, clearLine+"\n") + clearLine + clearBelow
}

// rows is the table; where it is too wide, the beginnings of long paths are left out.
func (s *screen) rows(list node.ActorList, width int) []string {
	rows, longest, widest := table(list, false), 0, 0
	for _, a := range list.Actors {
		longest = max(longest, len([]rune(a.Path)))
	}
	for _, r := range rows {
		widest = max(widest, len([]rune(r)))
	}
	room := max(longest-(widest-width), shortestPath)
	if widest <= width || longest <= room {
		return rows
	}
	for i, a := range list.Actors {
		if r := []rune(a.Path); len(r) > room {
			list.Actors[i].Path = "…" + string(r[len(r)-room+1:])
		}
	}
	return table(list, false)
}

// summary is the line at the top.
func (s *screen) summary() string {
	if s.err != nil {
		return "no answer: " + oneLine(s.err.Error()) + "   (q ends)"
	}
	states, all := map[string]int{}, 0
	for _, a := range s.list.Actors {
		states[a.State]++
		all++
		for state, n := range a.Members {
			if !s.query.All {
				states[state] += n
				all += n
			}
		}
	}
	text := fmt.Sprintf("%s  %d actors, %d running", s.list.At.Local().Format(time.TimeOnly), all, states["running"])
	for _, state := range []string{"starting", "stopping", "backing-off", "parked", "dead", "idle"} {
		if states[state] > 0 {
			text += fmt.Sprintf(", %d %s", states[state], state)
		}
	}
	if s.held {
		text += ", held"
	}
	return text + "; by " + s.sort + "   (t c m o r f sort, a members, space holds, q ends)"
}

// watchTree shows the tree until somebody ends it.
func watchTree(ctx context.Context, client *node.LocalClient, q node.ActorQuery, sort string, interval time.Duration) error {
	q.CPU = 0
	first, err := client.Actors(ctx, q)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	restore, err := quietKeys(os.Stdin)
	if err == nil {
		defer restore()
	}
	fmt.Print(enterScreen)
	defer fmt.Print(leaveScreen)
	s := &screen{query: q, sort: sort, list: first}
	s.loop(ctx, client, interval)
	return nil
}

// seen is the answer to one look at the tree.
type seen struct {
	list node.ActorList
	err  error
}

func (s *screen) loop(ctx context.Context, client *node.LocalClient, interval time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	keys, pictures := make(chan byte), make(chan seen)
	go readKeys(ctx, os.Stdin, keys)
	stopLooking := s.look(ctx, client, interval, pictures)
	defer func() { stopLooking() }()
	for {
		width, height := terminalSize(os.Stdout)
		fmt.Print(s.draw(width, height))
		select {
		case <-ctx.Done():
			return
		case <-resized:
		case p := <-pictures:
			s.take(p)
		case b := <-keys:
			quit, ask := s.key(b)
			if quit {
				return
			}
			if ask {
				// The picture in the making shows something else.
				stopLooking()
				stopLooking = s.look(ctx, client, interval, pictures)
			}
		}
	}
}

// take shows a new picture unless the old one is held.
func (s *screen) take(p seen) {
	s.err = p.err
	if p.err == nil && !s.held {
		s.list = p.list
	}
}

// look begins to take one picture after the other.
func (s *screen) look(ctx context.Context, client *node.LocalClient, interval time.Duration, out chan<- seen) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	go takePictures(ctx, client, s.query, interval, out)
	return cancel
}

// takePictures begins with one at once; then measuring CPU shares takes as long as the interval.
func takePictures(ctx context.Context, client *node.LocalClient, q node.ActorQuery, interval time.Duration, out chan<- seen) {
	for q.CPU = 0; ; q.CPU = interval {
		begin := time.Now()
		list, err := client.Actors(ctx, q)
		select {
		case out <- seen{list, err}:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(interval - time.Since(begin)):
		case <-ctx.Done():
			return
		}
	}
}

// readKeys passes on what is typed.
func readKeys(ctx context.Context, from *os.File, keys chan<- byte) {
	b := make([]byte, 1)
	for {
		if n, err := from.Read(b); err != nil || n == 0 {
			return
		}
		select {
		case keys <- b[0]:
		case <-ctx.Done():
			return
		}
	}
}
