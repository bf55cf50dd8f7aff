package replicagroup

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/actors/strategy"
)

// TestWhatIsStoredComesBack: a record that was stored and read back is the same record, or no decision would hold.
func TestWhatIsStoredComesBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		d := anyDurable(rng)
		var g, back Group
		g.UID = "u"
		g.Status.keep(d)
		text, err := json.Marshal(&g)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if got, ok := back.durable(); !ok || got != d {
			t.Fatalf("stored %+v\nread   %+v\nas %s", d, got, text)
		}
	}
}

func anyDurable(rng *rand.Rand) strategy.Durable {
	some := func() bool { return rng.IntN(2) == 0 }
	moment := func() strategy.Time { return strategy.Time(rng.Int64N(4e15)) }
	span := func() time.Duration { return time.Duration(rng.Int64N(int64(1000 * time.Hour))) }
	config := func() strategy.Config {
		return strategy.Config{ReplicationFactor: rng.IntN(5), Shape: strategy.Shape{
			Size: []string{"s", "m"}[rng.IntN(2)], Template: []string{"a", "b"}[rng.IntN(2)],
			AvailabilityZones: strategy.MakeZones([]string{"z2", "z1"}[:rng.IntN(3)]...),
		}}
	}
	d := strategy.Durable{UID: "u", Generation: rng.Int64N(100), Config: config()}
	if some() {
		d.Schedule = strategy.Schedule{OnRefresh: true, HydrationEstimate: span()}
	}
	if some() {
		p := strategy.BurstPolicy{Size: "l"}
		if some() {
			p.Linger = strategy.Some(span())
		}
		d.Policy = strategy.Some(p)
	}
	if some() {
		d.Reconfiguration = strategy.Some(strategy.Reconfiguration{
			Generation: rng.Int64N(100), Target: config(), Started: moment(), Deadline: moment(),
			OnTimeout: strategy.OnTimeout(rng.IntN(2)), Status: strategy.InProgress + strategy.Status(rng.IntN(5)),
		})
	}
	if some() {
		b := strategy.Burst{Size: "l", Shed: some()}
		if some() {
			b.HydratedAt = strategy.Some(moment())
		}
		d.Burst = strategy.Some(b)
	}
	return d
}
