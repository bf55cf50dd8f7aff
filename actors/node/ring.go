package node

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

// followBuffer is how many faults may wait for a slow reader; what comes beyond it is
// counted, not kept.
const followBuffer = 256

// FaultLine is one fault as it is shown to people; its stack is had by its hash.
type FaultLine struct {
	At         time.Time `json:"at"`
	Kind       string    `json:"kind"`
	Path       string    `json:"path"`
	Generation uint64    `json:"generation"`
	// Message is the type of what was being handled, or "job NAME".
	Message string `json:"message"`
	Error   string `json:"error"`
	Hash    string `json:"hash"`
	// HasStack tells that the stack was kept.
	HasStack bool `json:"hasStack"`
	// Lost is how many faults came too fast to be told, before this one.
	Lost int64 `json:"lost,omitempty"`
}

func faultLine(f supervision.Fault) FaultLine {
	return FaultLine{
		At: f.At, Kind: f.Kind.String(), Path: f.Path, Generation: f.Generation, Message: f.Message, Error: fmt.Sprint(f.Err),
		Hash: f.StackHash(), HasStack: len(f.Stack) > 0,
	}
}

// faults lists the kept faults, one in a line, and with follow=true each later one.
func (s *steering) faults(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	path := strings.Trim(q.Get("path"), "/")
	after, _ := time.Parse(time.RFC3339Nano, q.Get("after"))
	news, lost, cancel := s.subscribe(path)
	defer cancel()
	old := s.kept(path)
	if len(old) == 0 && path != "" {
		tree := s.sys.Inspect()
		if _, ok := find(tree.Root, path); !ok {
			http.Error(w, noActor(tree, path), http.StatusNotFound)
			return
		}
	}
	w.Header().Set("Content-Type", "application/jsonl")
	out, told := json.NewEncoder(w), map[string]bool{}
	for _, f := range old {
		told[identityOf(f)] = true
		if f.At.After(after) {
			_ = out.Encode(faultLine(f))
		}
	}
	flush := http.NewResponseController(w)
	for q.Get("follow") == "true" && flush.Flush() == nil {
		select {
		case f := <-news:
			if !told[identityOf(f)] {
				line := faultLine(f)
				line.Lost = lost.Swap(0)
				_ = out.Encode(line)
			}
		case <-r.Context().Done():
			return
		case <-s.gone.Done():
			return
		}
	}
}

// subscribe collects the faults at and below path from now on.
func (s *steering) subscribe(path string) (news chan supervision.Fault, lost *atomic.Int64, cancel func()) {
	news, lost = make(chan supervision.Fault, followBuffer), new(atomic.Int64)
	cancel = s.sys.Faults().Subscribe(func(f supervision.Fault) {
		if !below(f.Path, path) {
			return
		}
		select {
		case news <- f:
		default:
			lost.Add(1)
		}
	})
	return news, lost, cancel
}

func (s *steering) kept(path string) (out []supervision.Fault) {
	for _, f := range s.sys.Faults().Recent() {
		if below(f.Path, path) {
			out = append(out, f)
		}
	}
	return out
}

// below tells whether an actor is at a path or below it; below the empty path is everything.
func below(actor, path string) bool {
	return path == "" || actor == path || strings.HasPrefix(actor, path+"/")
}

// identityOf tells faults apart: one that happens while the list is read is seen twice.
func identityOf(f supervision.Fault) string {
	return fmt.Sprint(f.Path, "#", f.Generation, " ", f.Kind, " ", f.At.UnixNano())
}

// stack prints the stack with a hash: that of the latest fault, or of a generation that was
// left behind.
func (s *steering) stack(w http.ResponseWriter, r *http.Request) {
	hash := r.URL.Query().Get("hash")
	text := s.faultStack(hash)
	if text == "" {
		text = s.zombieStack(hash)
	}
	if text == "" {
		http.Error(w, fmt.Sprintf("no kept fault has a stack with the hash %q; nodeactor faults lists them", hash), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, text)
}

func (s *steering) faultStack(hash string) string {
	times := 0
	var last supervision.Fault
	for _, f := range s.sys.Faults().Recent() {
		if f.StackHash() == hash && len(f.Stack) > 0 {
			last = f
			times++
		}
	}
	if times == 0 {
		return ""
	}
	return fmt.Sprintf("%d of the kept faults have this stack, the last at %s:\n%s\n\n%s", times, last.At.Format(time.RFC3339), oneLine(last.Error()), strings.TrimSpace(string(last.Stack)))
}

func (s *steering) zombieStack(hash string) (text string) {
	s.sys.Scan("", func(n supervision.Node) bool {
		for _, z := range n.Zombies {
			if z.StackHash == hash {
				text = fmt.Sprintf("%s#%d was left behind at %s while it did this:\n\n%s", n.Path, z.Generation, z.Since.Format(time.RFC3339), strings.TrimSpace(z.Stack))
			}
		}
		return text == ""
	})
	return text
}

// oneLine puts a text that may have several lines into one.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
