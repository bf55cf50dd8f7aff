package linear

import (
	"fmt"
	"math"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// judgeFor bounds the search for an order.
const judgeFor = 60 * time.Second

// Outcome is what a client was told.
type Outcome string

// What a client can be told.
const (
	OK       Outcome = "ok"
	NotFound Outcome = "not found"
	Exists   Outcome = "exists"
	Conflict Outcome = "conflict"
	// Refused is an answer that says that nothing was done.
	Refused Outcome = "refused"
	// Unknown is no answer, or one that does not say whether anything was done.
	Unknown Outcome = "unknown"
)

// Call is what a client asks for. The values of writes are unique, and stand for the versions they make.
type Call struct {
	Do     string // get, create, update, delete, and what a model adds
	Key    string
	Value  string // to write
	Expect string // the value that the client has seen; a write on anything else is a conflict
	Until  int64  // when a value may vanish, at the soonest
}

// Answer is what came of a call.
type Answer struct {
	Outcome Outcome
	Value   string
	Version uint64 // the resource version of what was read or written; 0 = not told
	At      int64  // when it came
}

// Record is what happened.
type Record struct {
	begin time.Time
	mu    sync.Mutex
	ops   []porcupine.Operation
	told  map[Outcome]int
}

// NewRecord returns an empty record that begins now.
func NewRecord() *Record { return &Record{begin: time.Now(), told: map[Outcome]int{}} }

// Now is the time of the record.
func (r *Record) Now() int64 { return int64(time.Since(r.begin)) }

// Do makes a call and records it. One of which nothing is known lasts for ever: it may be done at any time, or at the end of all, where nobody
// sees it.
func (r *Record) Do(client int, c Call, f func() Answer) Answer {
	op := porcupine.Operation{ClientId: client, Input: c, Call: r.Now()}
	a := f()
	a.At = r.Now()
	op.Output, op.Return = a, a.At
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told[a.Outcome]++
	if a.Outcome == Unknown {
		op.Return = math.MaxInt64
	}
	if nothing := a.Outcome == Refused || a.Outcome == Unknown && (c.Do == "get" || c.Do == "epoch"); !nothing {
		r.ops = append(r.ops, op)
	}
	return a
}

// Told counts the answers.
func (r *Record) Told() map[Outcome]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	told := map[Outcome]int{}
	for o, n := range r.told {
		told[o] = n
	}
	return told
}

// Linearizable reports whether there is an order that explains the record, and how long the search took; false with an error when it was not
// found out in time.
func (r *Record) Linearizable(model porcupine.Model) (bool, porcupine.LinearizationInfo, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	res, info := porcupine.CheckOperationsVerbose(model, r.ops, judgeFor)
	if res == porcupine.Unknown {
		return false, info, fmt.Errorf("not found out within %s whether %d operations are linearizable", judgeFor, len(r.ops))
	}
	return res == porcupine.Ok, info, nil
}

// Judge fails the test unless the record is linearizable; it leaves a page behind that shows why it is not.
func (r *Record) Judge(t testing.TB, what string, model porcupine.Model) {
	t.Helper()
	begin := time.Now()
	ok, info, err := r.Linearizable(model)
	t.Logf("%s: %d operations, answers %v, judged in %s", what, len(r.ops), r.Told(), time.Since(begin).Round(time.Millisecond))
	if ok {
		return
	}
	if err == nil {
		err = fmt.Errorf("not linearizable")
	}
	t.Errorf("%s: %v; see %s", what, err, picture(model, info))
}

func picture(model porcupine.Model, info porcupine.LinearizationInfo) string {
	f, err := os.CreateTemp("", "linear-*.html")
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if err := porcupine.Visualize(model, info, f); err != nil {
		return err.Error()
	}
	return f.Name()
}
