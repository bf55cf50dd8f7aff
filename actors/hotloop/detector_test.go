package hotloop

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

var someTime = time.Unix(1e9, 0)

func ours(manifest string) Writer { return Writer{Name: "replicaset", Manifest: manifest} }

// TestP56 plays a node that rejects every pod: of a set of any size at most twenty pods too many are made, within ten seconds, and other
// sets go on.
func TestP56_RejectedPodsPauseTheirOwnerAlone(t *testing.T) {
	for _, size := range []int{1, 3, 100} {
		d, now, made, failed := New(), someTime, 0, 0
		for tripped := false; !tripped; now = now.Add(33 * time.Millisecond) { // 1,800 a minute
			if now.Sub(someTime) > 10*time.Second {
				t.Fatalf("size %d: no trip in ten seconds", size)
			}
			for made-failed < size && !tripped {
				_, tripped = d.Step(now, Event{Kind: Creating, Writer: ours("ns:bad")})
				if !tripped {
					made++
				}
			}
			if failed < made {
				failed++
				d.Step(now, Event{Kind: Failed, Writer: ours("ns:bad"), Other: Writer{Name: "kubelet"}})
			}
		}
		if made-size > 20 {
			t.Errorf("size %d: %d pods too many", size, made-size)
		}
		if _, paused := d.Paused(now, ours("ns:bad")); !paused {
			t.Errorf("size %d: the owner goes on", size)
		}
		if _, paused := d.Paused(now, ours("ns:good")); paused {
			t.Errorf("size %d: another owner pauses", size)
		}
	}
}

func TestP58_OscillationIsFoundWithinFiveCycles(t *testing.T) {
	for period := 2; period < ringSize; period++ {
		d, found := New(), 0
		for i := range 5 * period {
			if _, tripped := d.Step(someTime.Add(time.Duration(i)*time.Second), Event{
				Kind: Wrote, Writer: ours("ns:a"), Object: Object{Resource: "things", Name: "o"}, Content: uint64(i%period + 1),
			}); tripped {
				found = i + 1
				break
			}
		}
		if found == 0 {
			t.Errorf("a cycle of %d contents is not found in five rounds", period)
		}
	}
}

func TestMeaningLeavesOutWhatEveryWriteChanges(t *testing.T) {
	base := `{"metadata":{"name":"a","resourceVersion":"1","managedFields":[{"manager":"x"}]},"spec":{"list":[{"a":1},{"b":2}]},"status":{"conditions":[{"type":"Ready","lastTransitionTime":"t1"}]}}`
	same := `{"metadata":{"name":"a","resourceVersion":"2","managedFields":[{"manager":"y"}],"generation":7},"spec":{"list":[{"b":2},{"a":1}]},"status":{"conditions":[{"type":"Ready","lastTransitionTime":"t2"}]}}`
	if hash(t, base) != hash(t, same) {
		t.Error("a new version, a new time or another order means something")
	}
	for _, other := range []string{
		`{"metadata":{"name":"b"},"spec":{"list":[{"a":1},{"b":2}]},"status":{"conditions":[{"type":"Ready"}]}}`,
		`{"metadata":{"name":"a"},"spec":{"list":[{"a":2},{"b":1}]},"status":{"conditions":[{"type":"Ready"}]}}`,
		`{"metadata":{"name":"a"},"spec":{"list":[{"a":1},{"b":2},{"b":2}]},"status":{"conditions":[{"type":"Ready"}]}}`,
		`{"metadata":{"name":"a"},"spec":{"list":[{"a":1},{"b":2}]},"status":{"conditions":[{"type":"Done"}]}}`,
	} {
		if hash(t, base) == hash(t, other) {
			t.Errorf("means the same: %s", other)
		}
	}
}

func hash(t *testing.T, text string) uint64 {
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return Meaning(object)
}

func TestMemoryIsBounded(t *testing.T) {
	d := New()
	for i := range 3 * maxPairs {
		w := ours(fmt.Sprint("ns:", i))
		o := Object{Resource: "things", Name: fmt.Sprint(i)}
		d.Step(someTime, Event{Kind: Wrote, Writer: w, Object: o, Content: 1})
		for range creates {
			d.Step(someTime, Event{Kind: Failed, Writer: w})
		}
		for range creates {
			d.Step(someTime, Event{Kind: Creating, Writer: w})
		}
	}
	if d.pairs.len() > maxPairs || d.objects.len() > maxObjects || d.writers.len() > maxWriters {
		t.Errorf("%d pairs, %d objects, %d writers", d.pairs.len(), d.objects.len(), d.writers.len())
	}
	if d.paused != maxWriters {
		t.Errorf("%d pauses of %d writers are known", d.paused, maxWriters)
	}
	if over := d.Release(someTime.Add(time.Hour)); len(over) != maxWriters || d.paused != 0 {
		t.Errorf("%d pauses released, %d left", len(over), d.paused)
	}
}

// FuzzDetector holds, whatever happens: only reconcilers are paused, a pause has an end within its bounds, what tripped is paused until
// then and released once, and memory stays bounded.
func FuzzDetector(f *testing.F) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 3))
		moves := make([]byte, 600)
		for i := range moves {
			moves[i] = byte(rng.Uint32())
		}
		f.Add(moves)
	}
	f.Fuzz(func(t *testing.T, moves []byte) {
		d, now, held := New(), someTime, map[Writer]time.Time{}
		for i := 0; i+2 < len(moves) && i < 6000; i += 3 {
			now = now.Add(time.Duration(moves[i]) * 20 * time.Millisecond)
			event := eventOf(moves[i+1], moves[i+2])
			if moves[i]%32 == 31 {
				d.Forgive(now, event.Writer)
				if until, ok := held[event.Writer]; ok && now.Before(until) {
					held[event.Writer] = now
				}
			}
			checkStep(t, d, now, event, held)
			checkPauses(t, d, now, held)
		}
	})
}

func eventOf(a, b byte) Event {
	writers := []Writer{ours("ns:a"), ours("ns:b"), {Name: "deployment", Manifest: "ns:a"}, {Name: "kubectl"}}
	return Event{
		Kind: EventKind(a%6) + 1, Writer: writers[a>>3%4], Other: writers[b%4],
		Object: Object{Resource: "things", Name: string(rune('a' + b>>4%3))}, Content: uint64(b % 3), Same: b%7 == 0,
	}
}

func checkStep(t *testing.T, d *Detector, now time.Time, e Event, held map[Writer]time.Time) {
	trip, tripped := d.Step(now, e)
	if !tripped {
		return
	}
	pause := trip.Until.Sub(trip.At)
	if !trip.Writer.Ours() || trip.Reason == 0 || pause < pauseFirst || pause > pauseLast || !trip.At.Equal(now) || trip.Strikes < 1 {
		t.Fatalf("event %+v trips %+v", e, trip)
	}
	held[trip.Writer] = trip.Until
}

func checkPauses(t *testing.T, d *Detector, now time.Time, held map[Writer]time.Time) {
	for w, until := range held {
		if _, paused := d.Paused(now, w); paused != now.Before(until) {
			t.Fatalf("%s is paused %v at %v, until %v", w, paused, now, until)
		}
	}
	for _, over := range d.Release(now) {
		if until, ok := held[over.Writer]; !ok || now.Before(until) {
			t.Fatalf("%s is released at %v, paused until %v", over.Writer, now, until)
		}
		delete(held, over.Writer)
	}
}

func BenchmarkStep(b *testing.B) {
	d, e := New(), Event{Kind: Wrote, Writer: ours("ns:a"), Object: Object{Resource: "things", Namespace: "ns", Name: "a"}}
	b.ReportAllocs()
	for i := range b.N {
		e.Content = uint64(i%3 + 1)
		d.Step(someTime.Add(time.Duration(i)*time.Second), e)
	}
}

func TestAnnouncedWritersAreKnownBeforeTheirAnswer(t *testing.T) {
	d, o, kubectl := New(), Object{Resource: "things", Name: "o"}, Writer{Name: "kubectl"}
	d.Announce(kubectl, o)
	if w := d.LastWriter(o); w != (Writer{}) || d.IsWatched(someTime, o) {
		t.Errorf("an object that no reconciler writes is remembered, with %v", w)
	}
	d.Announce(ours("ns:a"), o)
	if w := d.LastWriter(o); w != ours("ns:a") || d.IsWatched(someTime, o) {
		t.Errorf("the writer is %v", w)
	}
	d.Step(someTime, Event{Kind: Wrote, Writer: ours("ns:a"), Object: o})
	d.Announce(kubectl, o)
	if w := d.LastWriter(o); w != kubectl || !d.IsWatched(someTime, o) {
		t.Errorf("the writer is %v", w)
	}
	if d.IsWatched(someTime.Add(quiet), o) {
		t.Error("it is watched for ever")
	}
}

func TestBusyTellsOnceWhenItBeginsAndEnds(t *testing.T) {
	b, now, began, ended := &Busy{}, someTime, 0, 0
	look := func() {
		switch continuous, news := b.Turned(now); {
		case news && continuous:
			began++
		case news:
			ended++
		}
	}
	for range 49 {
		b.Note(now)
		b.Note(now)
		look()
		now = now.Add(time.Second)
	}
	if began != 0 || b.Seconds(now) != 49 {
		t.Fatalf("continuous after %d busy seconds", b.Seconds(now))
	}
	for range 100 {
		b.Note(now)
		look()
		now = now.Add(time.Second)
	}
	if began != 1 || ended != 0 || b.Seconds(now) != busySpan-1 {
		t.Errorf("began %d times, ended %d times, %d busy seconds", began, ended, b.Seconds(now))
	}
	now = now.Add(30 * time.Second)
	look()
	look()
	if ended != 1 {
		t.Errorf("ended %d times", ended)
	}
	b.Note(now.Add(-time.Hour))
	if b.Seconds(now.Add(2*time.Minute)) != 0 {
		t.Error("idle seconds do not age out")
	}
}
