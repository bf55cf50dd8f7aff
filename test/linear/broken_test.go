package linear

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// TestTheJudgeFindsStaleReads: members that answered reads without asking the others would be found out. It is the real store, read as a broken
// one would be: from what a member that is cut off happens to have.
func TestTheJudgeFindsStaleReads(t *testing.T) {
	f := newFleet(t)
	var cutOff *process
	for cutOff == nil {
		if l := f.leader(); l != nil {
			cutOff = f.members[0]
			if cutOff == l {
				cutOff = f.members[1]
			}
		}
	}
	other := f.members[2]
	rec := NewRecord()
	do := func(p *process, c Call, version uint64, verb string) Answer {
		return rec.Do(0, c, func() Answer {
			return p.ask(Request{Do: verb, Key: c.Key, Value: c.Value, Expect: c.Expect, Version: version}, 10*time.Second)
		})
	}
	first := do(other, Call{Do: "create", Key: "k", Value: "1"}, 0, "create")
	for do(cutOff, Call{Do: "get", Key: "k"}, 0, "get").Value != "1" {
		time.Sleep(10 * time.Millisecond)
	}
	f.isolate(cutOff)
	defer f.mend()
	if a := do(other, Call{Do: "update", Key: "k", Value: "2", Expect: "1"}, first.Version, "update"); a.Outcome != OK {
		t.Fatalf("two of three members do not write: %+v", a)
	}
	if a := do(cutOff, Call{Do: "get", Key: "k"}, 0, "get"); a.Outcome == OK && a.Value != "2" {
		t.Errorf("a consistent read of a member that is cut off: %+v", a)
	}
	if ok, _, err := rec.Linearizable(Objects); !ok || err != nil {
		t.Fatalf("what the real store answered: %v, %v", ok, err)
	}
	if a := do(cutOff, Call{Do: "get", Key: "k"}, 0, "get anything"); a.Value != "1" {
		t.Fatalf("the member that is cut off knows better: %+v", a)
	}
	if ok, info, err := rec.Linearizable(Objects); ok || err != nil {
		t.Errorf("a stale read passes for a consistent one: %v; see %s", err, picture(Objects, info))
	}
}

// history is operations one after another, by one client; one that lasts is open until the end.
func history(ops ...porcupine.Operation) *Record {
	r := NewRecord()
	for i, op := range ops {
		op.Call, op.Return = int64(10*i), int64(10*i+1)
		if op.Output.(Answer).Outcome == Unknown {
			op.Return = int64(10*len(ops)) + 10
		}
		r.ops = append(r.ops, op)
	}
	return r
}

func op(do, value, expect string, o Outcome, read string, version uint64) porcupine.Operation {
	return porcupine.Operation{Input: Call{Do: do, Key: "k", Value: value, Expect: expect}, Output: Answer{Outcome: o, Value: read, Version: version}}
}

// TestTheModelsRefuse what must not be.
func TestTheModelsRefuse(t *testing.T) {
	late := op("get", "", "", NotFound, "", 0)
	late.Output = Answer{Outcome: NotFound, At: 100}
	pass := op("create", "1", "", OK, "", 5)
	pass.Input = Call{Do: "create", Key: "k", Value: "1", Until: 50}
	early := op("get", "", "", NotFound, "", 0)
	for _, c := range []struct {
		name  string
		model porcupine.Model
		ops   []porcupine.Operation
		want  bool
	}{
		{"a write and its read", Objects, []porcupine.Operation{op("create", "1", "", OK, "1", 5), op("get", "", "", OK, "1", 5)}, true},
		{"a lost write", Objects, []porcupine.Operation{op("create", "1", "", OK, "1", 5), op("get", "", "", NotFound, "", 0)}, false},
		{"two versions of one value", Objects, []porcupine.Operation{op("create", "1", "", OK, "1", 5), op("get", "", "", OK, "1", 6)}, false},
		{"a version that goes back", Objects, []porcupine.Operation{op("create", "1", "", OK, "1", 5), op("update", "2", "1", OK, "2", 4)}, false},
		{"two updates of one version", Objects, []porcupine.Operation{op("create", "1", "", OK, "1", 5), op("update", "2", "1", OK, "2", 6), op("update", "3", "1", OK, "3", 7)}, false},
		{"a conflict that was none", Objects, []porcupine.Operation{op("create", "1", "", OK, "1", 5), op("update", "2", "1", Conflict, "", 0)}, false},
		{"a conflict whose write was done", Objects, []porcupine.Operation{op("create", "1", "", OK, "1", 5), op("update", "2", "1", Conflict, "", 0), op("get", "", "", OK, "2", 6)}, false},
		{"an unknown write that was done", Objects, []porcupine.Operation{op("create", "1", "", Unknown, "", 0), op("get", "", "", OK, "1", 5)}, true},
		{"an unknown write that was not", Objects, []porcupine.Operation{op("create", "1", "", Unknown, "", 0), op("get", "", "", NotFound, "", 0)}, true},
		{"an unknown write that was undone", Objects, []porcupine.Operation{op("create", "1", "", Unknown, "", 0), op("get", "", "", OK, "1", 5), op("get", "", "", NotFound, "", 0)}, false},
		{"a deleted object that is back", Objects, []porcupine.Operation{op("create", "1", "", OK, "1", 5), op("delete", "", "1", OK, "", 6), op("get", "", "", OK, "1", 5)}, false},
		{"a write of the holder", Fences, []porcupine.Operation{op("acquire", "e1", "", OK, "", 5), op("write", "1", "e1", OK, "", 6), op("get", "", "", OK, "1", 6)}, true},
		{"two holders of one epoch", Fences, []porcupine.Operation{op("acquire", "e1", "", OK, "", 5), op("acquire", "e2", "", OK, "", 6)}, false},
		{"a stale write that was accepted", Fences, []porcupine.Operation{op("acquire", "e1", "", OK, "", 5), op("acquire", "e2", "e1", OK, "", 6), op("write", "1", "e1", OK, "", 7)}, false},
		{"a stale write that was refused and done", Fences, []porcupine.Operation{op("acquire", "e1", "", OK, "", 5), op("acquire", "e2", "e1", OK, "", 6), op("write", "1", "e1", Conflict, "", 0), op("get", "", "", OK, "1", 7)}, false},
		{"a key that ends in time", Passing, []porcupine.Operation{pass, op("get", "", "", OK, "1", 5), late}, true},
		{"a key that ends too early", Passing, []porcupine.Operation{pass, early}, false},
		{"a key that is back", Passing, []porcupine.Operation{pass, late, op("get", "", "", OK, "1", 5)}, false},
	} {
		if ok, _, err := history(c.ops...).Linearizable(c.model); ok != c.want || err != nil {
			t.Errorf("%s: %v, %v", c.name, ok, err)
		}
	}
}
