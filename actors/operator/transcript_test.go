package operator

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/cluster/lease"
	"github.com/nodeactor/nodeactor/test/harness"
)

// play plays what becomes of one manifest. A line is:
//
//	finalizes                    the operator has a Finalize method
//	specify N                    a user stores the specification N
//	delete                       a user asks for the deletion
//	holder NODE EPOCH            the lease changes hands
//	wait D                       time passes
//	store down|up|fenced         what becomes of writes
//	pass WORD                    a pass, whose operator does what WORD says:
//	  ok, fail, panic, fenced, requeue=D, status=V, hold=NAME, release=NAME, respec, rename
//
// A pass is answered by its outcome and the writes it took, and by what is stored after "=".
type play struct {
	desk  *desk
	op    Operator[site]
	final bool
	word  string
	once  Once
	calls int
}

func (p *play) Line(words []string) ([]string, error) {
	d, arg := p.desk, strings.Join(words[1:], " ")
	switch words[0] {
	case "finalizes":
		p.final = true
	case "specify":
		pages, err := strconv.Atoi(arg)
		d.specify(site{Pages: pages})
		return nil, err
	case "delete":
		d.rec.Deleted, d.rec.Status.Phase = d.now, PhaseDeleting
	case "holder":
		epoch, err := strconv.ParseUint(words[2], 10, 64)
		d.fence = lease.Fence{Manifest: "Site//one", Holder: lease.SessionID{Node: words[1], Boot: "1"}, Epoch: epoch}
		return nil, err
	case "wait":
		wait, err := time.ParseDuration(arg)
		d.now = d.now.Add(wait)
		return nil, err
	case "store":
		d.refuse = map[string]error{"down": errBroken, "fenced": ErrFenced}[arg]
	case "pass":
		p.word = arg
		return p.pass()
	default:
		return nil, fmt.Errorf("unknown word %s", words[0])
	}
	return nil, nil
}

// pass runs one pass and tells what came of it.
func (p *play) pass() (answer []string, err error) {
	p.op = Func[site](p.reconcile)
	if p.final {
		p.op = builder{reconcile: p.reconcile, finalize: p.finalize}
	}
	r, err := NewRunner(p.op, OperatorConfig{})
	if err != nil {
		return nil, err
	}
	before := p.desk.commits
	p.calls = 0
	env := p.desk.env()
	env.Once = &p.once
	if due := r.Due(p.desk.rec, p.desk.now); due.After(p.desk.now) {
		answer = append(answer, fmt.Sprintf("not due for %s", due.Sub(p.desk.now)))
	}
	answer = append(answer, fmt.Sprintf("%s, called %d, wrote %d", p.run(r, env), p.calls, p.desk.commits-before))
	return append(answer, "= "+p.stored()), nil
}

// run is a pass, as far as it may panic.
func (p *play) run(r *Runner[site], env Env) (what string) {
	defer func() {
		if v := recover(); v != nil {
			what = fmt.Sprintf("panic: %v", v)
		}
	}()
	out := r.Pass(context.Background(), p.desk.rec, env)
	what = []string{"", "succeeded", "failed", "interrupted", "gone", "unanswered"}[out.Verdict]
	if out.After > 0 {
		what += ", again after " + out.After.String()
	}
	return what
}

// stored is what users see of the manifest.
func (p *play) stored() string {
	if p.desk.gone {
		return "nothing"
	}
	s, rec := p.desk.rec.Status, p.desk.rec
	text := fmt.Sprintf("%s %d/%d", s.Phase, s.ObservedGeneration, rec.Generation)
	if s.Attempts > 0 {
		text += fmt.Sprintf(" attempts=%d next=+%s %q", s.Attempts, s.NextTry.Sub(p.desk.now), s.LastError)
	}
	if s.Value != nil {
		text += " value=" + string(s.Value)
	}
	if s.Holder != "" {
		text += fmt.Sprintf(" by %s epoch %d", s.Holder, s.Epoch)
	}
	if len(rec.Finalizers) > 0 {
		text += " held by " + strings.Join(rec.Finalizers, ",")
	}
	return text
}

func (p *play) reconcile(_ context.Context, s *ManifestState[site]) (Action, error) {
	p.calls++
	name, value, _ := strings.Cut(p.word, "=")
	switch name {
	case "requeue":
		wait, err := time.ParseDuration(value)
		return Requeue(wait), err
	case "status":
		return None(), s.SetStatus(value)
	case "hold":
		s.AddFinalizer(value)
	case "release":
		s.RemoveFinalizer(value)
	case "respec":
		s.Manifest.Spec.Pages++
	case "rename":
		s.Manifest.Name = "other"
	case "panic":
		panic("no ink")
	case "fenced":
		return None(), ErrFenced
	case "fail":
		return None(), errors.New("no ink")
	}
	return None(), nil
}

func (p *play) finalize(ctx context.Context, s *ManifestState[site]) error {
	_, err := p.reconcile(ctx, s)
	return err
}

func TestTranscripts(t *testing.T) {
	harness.Play(t, "testdata/*.play", func() harness.Player {
		d := newDesk(t, site{})
		d.rec.Generation, d.rec.Hash = 0, ""
		return &play{desk: d}
	})
}
