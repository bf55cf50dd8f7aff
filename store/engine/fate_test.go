package engine

import (
	"context"
	"errors"
	"testing"
)

// lossy is a write whose first answer is lost; before the second try, others act.
type lossy struct {
	w      Write
	done   bool // the first try is done, though nobody hears of it
	others []Write
	alone  bool
	twin   bool // another client asks for the same at the same time
}

// outcome runs the write and returns what its client is told.
func (l lossy) outcome(t *testing.T, s *Seat) (Result, error) {
	t.Helper()
	m := s.member.Load()
	m.solo.Store(l.alone)
	tries := 0
	a := attempt{seat: s, w: l.w, since: m.Revision(), twin: s.twins.begin(l.w)}
	a.do = func(m *Member, ctx context.Context, w Write) (Result, error) {
		if tries++; tries > 1 {
			return m.Txn(ctx, w)
		}
		if l.done {
			must(t, m, w)
		}
		for _, o := range l.others {
			must(t, m, o)
		}
		return Result{}, unknown(ErrStalled)
	}
	if l.twin {
		defer s.twins.begin(l.w).done(0, nil)
	}
	res, err := a.run(context.Background(), m)
	a.twin.done(res.Revision, err)
	return res, err
}

// must does a write that nobody else hinders; Expect -2 stands for the key's present revision.
func must(t *testing.T, m *Member, w Write) Result {
	t.Helper()
	if w.Expect == present {
		page, err := m.Range(context.Background(), w.Key, "", 0, 1)
		if err != nil || len(page.KVs) != 1 {
			t.Fatalf("%s: %v, %v", w.Key, page, err)
		}
		w.Expect = page.KVs[0].ModRevision
	}
	res, err := m.Txn(context.Background(), w)
	if err != nil || !res.Done {
		t.Fatalf("%+v: %+v, %v", w, res, err)
	}
	return res
}

const present = -2

// TestALostAnswerIsFoundOut: what became of a write is told from its traces, and where they do not tell, that is said.
func TestALostAnswerIsFoundOut(t *testing.T) {
	const key = "/a"
	s := seatAt(t, t.TempDir())
	mine, theirs := []byte("mine"), []byte("theirs")
	reset := func(value []byte) int64 {
		m := s.member.Load()
		must(t, m, Write{Key: key, Expect: AnyRevision, Value: value})
		if value == nil {
			must(t, m, Write{Key: key, Expect: AnyRevision, Delete: true})
			return 0
		}
		return must(t, m, Write{Key: key, Expect: AnyRevision, Value: value}).Revision
	}
	overwrite, remove := Write{Key: key, Expect: present, Value: theirs}, Write{Key: key, Expect: present, Delete: true}
	create := Write{Key: key, Value: mine}
	for _, c := range []struct {
		name   string
		before []byte // nil = absent
		lossy
		want    string // done, refused, unknown
		present string
	}{
		{"not done, repeated", theirs, lossy{alone: true}, "done", "mine"},
		{"done", theirs, lossy{alone: true, done: true}, "done", "mine"},
		{"done and overwritten", theirs, lossy{alone: true, done: true, others: []Write{overwrite}}, "done", "theirs"},
		{"done and removed", theirs, lossy{alone: true, done: true, others: []Write{remove}}, "done", ""},
		{"another was first", theirs, lossy{alone: true, others: []Write{overwrite}}, "refused", "theirs"},
		{"another was first, with the same later", theirs, lossy{alone: true, others: []Write{overwrite, {Key: key, Expect: present, Value: mine}}}, "refused", "mine"},
		{"a twin", theirs, lossy{alone: true, done: true, twin: true}, "unknown", "mine"},
		{"create, done", nil, lossy{alone: true, done: true, w: create}, "done", "mine"},
		{"create, done and removed", nil, lossy{alone: true, done: true, w: create, others: []Write{remove}}, "done", ""},
		{"create, not done, repeated", nil, lossy{alone: true, w: create}, "done", "mine"},
		{"create, made and removed by another", nil, lossy{alone: true, w: create, others: []Write{{Key: key, Value: theirs}, remove}}, "done", "mine"},
		{"blind, done and overwritten", theirs, lossy{alone: true, done: true, w: Write{Key: key, Expect: AnyRevision, Value: mine}, others: []Write{overwrite}}, "done", "theirs"},
		{"create, another was first", nil, lossy{alone: true, w: create, others: []Write{{Key: key, Value: theirs}}}, "refused", "theirs"},
		{"delete, done", theirs, lossy{alone: true, done: true, w: Write{Delete: true}}, "done", ""},
		{"delete, done and made anew", theirs, lossy{alone: true, done: true, w: Write{Delete: true}, others: []Write{{Key: key, Value: theirs}}}, "done", "theirs"},
		{"delete, another was first", theirs, lossy{alone: true, w: Write{Delete: true}, others: []Write{overwrite}}, "refused", "theirs"},
		{"among several: not done, repeated", theirs, lossy{}, "done", "mine"},
		{"among several: done, or another's", theirs, lossy{done: true}, "unknown", "mine"},
		{"among several: another was first", theirs, lossy{others: []Write{overwrite}}, "refused", "theirs"},
		{"among several: create is not repeated", nil, lossy{w: create}, "unknown", ""},
		{"among several: create, done, of one's own", nil, lossy{done: true, w: Write{Key: key, Value: mine, Own: true}}, "done", "mine"},
		{"among several: create, made by another", nil, lossy{w: Write{Key: key, Value: mine, Own: true}, others: []Write{{Key: key, Value: theirs}}}, "unknown", "theirs"},
		{"among several: delete, done, or another's", theirs, lossy{done: true, w: Write{Delete: true}}, "unknown", ""},
	} {
		rev := reset(c.before)
		if c.w.Key == "" {
			c.w.Key, c.w.Expect, c.w.Value = key, rev, mine
		}
		res, err := c.outcome(t, s)
		got := "refused"
		switch {
		case errors.Is(err, ErrUnknown):
			got = "unknown"
		case err != nil:
			got = err.Error()
		case res.Done:
			got = "done"
		}
		if now := valueOf(t, s.member.Load(), key); got != c.want || now != c.present {
			t.Errorf("%s: %s and %q is there, want %s and %q", c.name, got, now, c.want, c.present)
		}
	}
}

func valueOf(t *testing.T, m *Member, key string) string {
	t.Helper()
	page, err := m.Range(context.Background(), key, "", 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(page.KVs) == 0 {
		return ""
	}
	return string(page.KVs[0].Value)
}

// TestAnOlderTwinIsNoProof: that somebody had written the same before, on what the write expects, does not make the write done.
func TestAnOlderTwinIsNoProof(t *testing.T) {
	s := seatAt(t, t.TempDir())
	m := s.member.Load()
	base := must(t, m, Write{Key: "/a", Value: []byte("0")}).Revision
	must(t, m, Write{Key: "/a", Expect: base, Value: []byte("1")})
	res, err := lossy{alone: true, w: Write{Key: "/a", Expect: base, Value: []byte("1")}}.outcome(t, s)
	if err != nil || res.Done {
		t.Errorf("a write on a state that was gone before it began: %+v, %v", res, err)
	}
}

// TestAGhostIsATwin: a write that was given up may still be done, until a later one has been answered.
func TestAGhostIsATwin(t *testing.T) {
	var all twins
	w := Write{Key: "/a", Expect: 5, Value: []byte("1")}
	all.begin(w).done(0, unknown(ErrStalled))
	second := all.begin(w)
	if !second.hasTwin() {
		t.Error("a write that was given up is forgotten")
	}
	second.done(0, nil)
	third := all.begin(w)
	if third.hasTwin() {
		t.Error("a write that was given up is feared after a later one was answered")
	}
	third.done(0, nil)
	if len(all.open) != 0 || len(all.ghosts) != 0 {
		t.Errorf("%d writes and %d ghosts are left", len(all.open), len(all.ghosts))
	}
}
