package kube

import "testing"

func TestOnlyAnActorThatKnowsAllWakesIsEnded(t *testing.T) {
	b := newBoard()
	key := Key{"ns", "a"}
	first := b.send(key)
	second := b.send(key)
	b.retire(key, first)
	if end, again := b.settle(); len(end) != 0 || len(again) != 1 {
		t.Fatalf("ended %v, again %v: a wake crossed the request", end, again)
	}
	b.retire(key, second)
	if end, again := b.settle(); len(end) != 1 || len(again) != 0 {
		t.Fatalf("ended %v, again %v", end, again)
	}
	if b.known(key) || len(b.keys()) != 0 {
		t.Error("an ended actor is known")
	}
	b.retire(key, second)
	if end, again := b.settle(); len(end)+len(again) != 0 {
		t.Error("an unknown actor was settled")
	}
}

func TestKeysReadBack(t *testing.T) {
	for _, key := range []Key{{"ns", "a"}, {"", "node"}, {"", "d3b0-uid"}} {
		if got := ParseKey(key.String()); got != key {
			t.Errorf("%v became %v", key, got)
		}
	}
}
