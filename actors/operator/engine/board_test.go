package engine

import (
	"testing"
	"time"
)

func always(Key) bool { return true }

// boardWith is a board with an actor for a key that was sent so many wakes.
func boardWith(key Key, wakes int) *board {
	b := newBoard(0)
	b.listen(func() {}, ms(0))
	b.wake(key, 1, always)
	for range wakes {
		b.send(key)
	}
	return b
}

func TestOnlyAnActorThatKnowsAllWakesIsEnded(t *testing.T) {
	key := Key{Namespace: "ns", Name: "a"}
	b := boardWith(key, 2)
	b.retire(request{key: key, number: 1, gone: true})
	if end, others := b.settle(); len(end) != 0 || len(others) != 1 {
		t.Fatalf("ended %v: a wake crossed the request", end)
	}
	b.retire(request{key: key, number: 2, gone: true})
	if end, _ := b.settle(); len(end) != 1 || b.size() != 0 || b.crew() != 0 {
		t.Fatalf("ended %v, %d known", end, b.size())
	}
	b.retire(request{key: key, number: 2, gone: true})
	if end, _ := b.settle(); len(end) != 0 {
		t.Error("an unknown actor was ended")
	}
}

func TestAManifestAtRestIsWokenByNewsAlone(t *testing.T) {
	key := Key{Name: "a"}
	b := boardWith(key, 1)
	b.saw(key, 7)
	b.retire(request{key: key, number: 1, due: ms(5000)})
	if end, _ := b.settle(); len(end) != 1 || b.size() != 1 || b.crew() != 0 {
		t.Fatalf("ended %v, %d known, %d actors", end, b.size(), b.crew())
	}
	if wait := b.nextDue(ms(1000)); wait != 4*time.Second {
		t.Errorf("the next pass is due in %v", wait)
	}
	if b.wake(key, 7, always) != drop || b.missed(key, 7) || !b.missed(key, 8) {
		t.Error("what was seen is news")
	}
	if b.wake(key, 8, always) != start || b.nextDue(ms(0)) != never {
		t.Error("news start no actor, or the manifest still rests")
	}
}

func TestTheSoonestIsDueFirst(t *testing.T) {
	b := newBoard(0)
	b.listen(func() {}, ms(0))
	for i, name := range []string{"c", "a", "d", "b", "e"} {
		key := Key{Name: name}
		b.wake(key, 1, always)
		b.retire(request{key: key, number: 0, due: ms(1000 * (int(name[0]-'a') + 1)), gone: i == 4})
	}
	b.settle()
	b.wake(Key{Name: "b"}, 2, always)
	keys := b.ripe(ms(3500), 10)
	if len(keys) != 2 || keys[0].Name != "a" || keys[1].Name != "c" || b.nextDue(ms(3500)) != 500*time.Millisecond {
		t.Errorf("due are %v, the next in %v", keys, b.nextDue(ms(3500)))
	}
}

func TestWhatIsGoneIsForgotten(t *testing.T) {
	key := Key{Name: "a"}
	b := boardWith(key, 1)
	b.retire(request{key: key, number: 1, due: ms(5000)})
	b.settle()
	if b.wake(key, 9, func(Key) bool { return false }) != drop || b.size() != 0 || b.nextDue(ms(0)) != never {
		t.Errorf("%d known", b.size())
	}
}

func TestTheLimitIsGivenInTurn(t *testing.T) {
	b := newBoard(1)
	b.listen(func() {}, ms(0))
	first, second, third := Key{Name: "1"}, Key{Name: "2"}, Key{Name: "3"}
	if b.wake(first, 1, always) != start || b.wake(second, 1, always) != drop || b.wake(third, 1, always) != drop {
		t.Fatal("not one at a time")
	}
	f := b.claim(first)
	b.enter(f, nil)
	if _, made := b.grants(); len(made) != 0 {
		t.Fatalf("%v beside the first", made)
	}
	b.leave(f)
	if _, made := b.grants(); len(made) != 1 || made[0] != second {
		t.Fatalf("%v after the first", made)
	}
	b.yield(second)
	if b.claim(first) != nil {
		t.Error("the first again, before the third")
	}
	if _, made := b.grants(); len(made) != 1 || made[0] != third {
		t.Fatalf("%v after the second", made)
	}
	b.reborn(third) // nothing: it holds no pass yet
	b.enter(b.claim(third), nil)
	b.reborn(third)
	if told, _ := b.grants(); len(told) != 1 || told[0] != first {
		t.Fatalf("%v after the actor of the third was replaced", told)
	}
	if s := b.stats(); s.Running != 1 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
}

func TestARefusalIsOverWhenGained(t *testing.T) {
	key := Key{Name: "a"}
	b := boardWith(key, 1)
	f := b.claim(key)
	gains := b.enter(f, nil)
	b.nudge(key, true)
	b.admit(f, false, gains)
	if b.stats().Refused != 0 {
		t.Error("it was gained meanwhile")
	}
	b.leave(f)
	f = b.claim(key)
	b.admit(f, false, b.enter(f, nil))
	b.leave(f)
	if b.wake(key, 100, always) != drop || b.stats().Refused != 1 {
		t.Error("a change wakes what is refused")
	}
	b.nudge(key, true)
	if b.stats().Refused != 0 || len(b.nudged()) != 2 || b.wake(key, 0, always) != tell {
		t.Error("it is not looked at again")
	}
}

func TestKeysReadBack(t *testing.T) {
	for _, key := range []Key{{"ns", "a"}, {"", "node"}, {"", "d3b0-uid"}} {
		if got := ParseKey(key.String()); got != key {
			t.Errorf("%v became %v", key, got)
		}
	}
}
