package strategy

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

func TestF108_DisjointWritesAreOneApply(t *testing.T) {
	b := begin(t, Spec{Config: size(2, "S"), Policy: Some(BurstPolicy{Size: "L"})})
	b.to(size(0, "M"), Wait{}) // Is done at once, in the tick in which the burst begins.
	b.tick()
	log := b.applied()
	if len(log) != 1 {
		t.Fatalf("%d batches", len(log))
	}
	if w := log[0].Update; !w.Size.set || !w.Reconfiguration.set || !w.Burst.set {
		t.Errorf("the write is %s", deeds(log[0].Batch))
	}
}

func TestF109_ExcludingWritesAreAnAlarm(t *testing.T) {
	exclude := []Strategy{
		wisher{"One", Config{}, StateWrite{ReplicationFactor: Set(1), Size: Set("M")}},
		wisher{"Two", Config{}, StateWrite{ReplicationFactor: Set(3)}},
		Baseline{},
	}
	b := begin(t, Spec{Config: size(2, "S")})
	b.kernel.Strategies = exclude
	func() {
		defer func() {
			if c, ok := recover().(Conflict); !ok || c.Field != "replicationFactor" {
				t.Errorf("in a test the alarm is %v", c)
			}
		}()
		b.tick()
	}()
	if len(b.applied()) > 0 {
		t.Error("something was applied")
	}
	b.kernel.Alarm = nil
	report := b.tick()
	want := []Conflict{{Set: "db", Field: "replicationFactor", Strategies: []Cause{"One", "Two"}}}
	if !reflect.DeepEqual(report.Conflicts, want) {
		t.Errorf("alarms %+v", report.Conflicts)
	}
	b.realized(size(2, "M"))
	b.replicas("r1:M r2:M")
}

func TestTheSameTwiceIsNoConflict(t *testing.T) {
	same := StateWrite{Size: Set("M"), Burst: Set(Change[Burst]{})}
	write, conflicts := Merge("db", []Contribution{{"One", same}, {"Two", same}})
	if len(conflicts) > 0 || write != same {
		t.Errorf("merged to %+v, %v", write, conflicts)
	}
}

func TestAnAuditRecordIsPartOfAWrite(t *testing.T) {
	forced := Change[Reconfiguration]{Audit: Some(Audit{Event: ReconfigurationFinalized, Forced: true})}
	_, conflicts := Merge("db", []Contribution{
		{"One", StateWrite{Reconfiguration: Set(forced)}}, {"Two", StateWrite{Reconfiguration: Set(Change[Reconfiguration]{})}},
	})
	if len(conflicts) != 1 {
		t.Errorf("conflicts %v", conflicts)
	}
}

func TestAWriteOfWhatIsThereIsNone(t *testing.T) {
	b := steady(t, Spec{Config: size(2, "S")})
	b.kernel.Strategies = append(b.kernel.Strategies, wisher{"One", Config{}, StateWrite{
		Burst: Set(Change[Burst]{Audit: Some(Audit{Event: BurstFinished})}), Reconfiguration: Set(Change[Reconfiguration]{}),
	}.realize(size(2, "S"))})
	b.quiet()
	b.told()
}

// anyWrite is a write with few different values, so that writes often exclude each other.
func anyWrite(bits uint32) StateWrite {
	rng := rand.New(rand.NewPCG(uint64(bits), 9))
	w := StateWrite{}
	maybe := func(set func()) {
		if rng.IntN(2) == 0 {
			set()
		}
	}
	maybe(func() { w.Size = Set([]string{"S", "M"}[rng.IntN(2)]) })
	maybe(func() { w.ReplicationFactor = Set(rng.IntN(2)) })
	maybe(func() { w.AvailabilityZones = Set(MakeZones([]string{"a", "b"}[:rng.IntN(3)]...)) })
	maybe(func() { w.Logging = Set(Logging{Debug: rng.IntN(2) == 0}) })
	maybe(func() { w.Compression = Set(rng.IntN(2) == 0) })
	maybe(func() { w.Template = Set([]string{"t1", "t2"}[rng.IntN(2)]) })
	maybe(func() {
		w.Reconfiguration = Set(Change[Reconfiguration]{Record: Some(Reconfiguration{Status: Status(1 + rng.IntN(2))})})
	})
	maybe(func() { w.Burst = Set(Change[Burst]{}) })
	return w
}

// FuzzMerge reads contributions from the input and merges them in the order given, in another, and in groups.
func FuzzMerge(f *testing.F) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		input := make([]byte, 4*(1+rng.IntN(6)))
		for i := range input {
			input[i] = byte(rng.Uint32())
		}
		f.Add(input, seed)
	}
	f.Fuzz(func(t *testing.T, input []byte, shuffle uint64) {
		var all []Contribution
		for ; len(input) >= 4 && len(all) < 8; input = input[4:] {
			bits := binary.LittleEndian.Uint32(input)
			all = append(all, Contribution{Cause("s" + string('0'+rune(bits%7))), anyWrite(bits)})
		}
		write, conflicts := Merge("db", all)
		other := slices.Clone(all)
		rand.New(rand.NewPCG(shuffle, 2)).Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
		again, alarms := Merge("db", other)
		if write != again || !reflect.DeepEqual(conflicts, alarms) {
			t.Fatalf("in another order:\n%+v %v\n%+v %v", write, conflicts, again, alarms)
		}
		cut := int(shuffle % uint64(len(all)+1))
		var left, right StateWrite
		for i, c := range all {
			if i < cut {
				left = left.join(c.Write)
			} else {
				right = right.join(c.Write)
			}
		}
		if joined := left.join(right); joined.settled() != write || joined.join(joined) != joined {
			t.Fatalf("in groups: %+v, want %+v", joined, write)
		}
		checkMerge(t, all, write, conflicts)
	})
}

// checkMerge compares with what merging means: a field is written if all who write it agree, and an alarm if they do not.
func checkMerge(t *testing.T, all []Contribution, write StateWrite, conflicts []Conflict) {
	merged := reflect.ValueOf(write)
	frozen := 0
	for i := range merged.NumField() {
		var values []any
		for _, c := range all {
			field := reflect.ValueOf(c.Write).Field(i)
			if field.FieldByName("set").Bool() && !slices.Contains(values, keyOf(field)) {
				values = append(values, keyOf(field))
			}
		}
		got := merged.Field(i)
		switch {
		case len(values) == 1 && (!got.FieldByName("set").Bool() || keyOf(got) != values[0]):
			t.Fatalf("%s is %v, want %v", merged.Type().Field(i).Name, got, values[0])
		case len(values) != 1 && got.FieldByName("set").Bool():
			t.Fatalf("%s is %v of %v", merged.Type().Field(i).Name, got, values)
		case len(values) > 1:
			frozen++
		}
	}
	if frozen != len(conflicts) {
		t.Fatalf("%d frozen fields, %d alarms", frozen, len(conflicts))
	}
}

func keyOf(field reflect.Value) any { return reflectString(field.FieldByName("value")) }

// reflectString prints a value that cannot be had by Interface, because its field is not exported.
func reflectString(v reflect.Value) string { return fmt.Sprintf("%#v", v) }
