package replicagroup

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeactor/nodeactor/actors/strategy"
)

// Words of the API for what the kernel numbers.
var (
	onTimeouts = wordsOf(strategy.Rollback, strategy.Commit)
	statuses   = wordsOf(strategy.InProgress, strategy.Finalized, strategy.TimedOut, strategy.ResourceExhausted, strategy.Cancelled)
)

func wordsOf[T interface {
	comparable
	fmt.Stringer
}](values ...T) map[string]T {
	words := map[string]T{}
	for _, v := range values {
		words[v.String()] = v
	}
	return words
}

// declared is the group's spec as the kernel has it; template is the version of its template.
func (g *Group) declared(template string) strategy.Spec {
	s := strategy.Spec{
		Generation: g.Generation,
		Config: strategy.Config{ReplicationFactor: g.Spec.Replicas, Shape: strategy.Shape{
			Size: g.Spec.Size, AvailabilityZones: strategy.MakeZones(g.Spec.Zones...), Template: template,
		}},
		Policy: policyOf(g.Spec.HydrationBurst),
		Wait:   strategy.Wait{Timeout: durationOf(g.Spec.Reconfiguration.Timeout), OnTimeout: onTimeouts[g.Spec.Reconfiguration.OnTimeout]},
	}
	if schedule := g.Spec.Schedule; schedule != nil {
		s.Schedule = strategy.Schedule{OnRefresh: true, HydrationEstimate: schedule.OnRefresh.HydrationEstimate.Duration}
	}
	return s
}

func policyOf(b *Burst) strategy.Optional[strategy.BurstPolicy] {
	if b == nil {
		return strategy.Optional[strategy.BurstPolicy]{}
	}
	return strategy.Some(strategy.BurstPolicy{Size: b.Size, Linger: durationOf(b.Linger)})
}

func burstOf(policy strategy.Optional[strategy.BurstPolicy]) *Burst {
	p, ok := policy.Get()
	if !ok {
		return nil
	}
	b := &Burst{Size: p.Size}
	if linger, ok := p.Linger.Get(); ok {
		b.Linger = &metav1.Duration{Duration: linger}
	}
	return b
}

func durationOf(d *metav1.Duration) strategy.Optional[time.Duration] {
	if d == nil {
		return strategy.Optional[time.Duration]{}
	}
	return strategy.Some(d.Duration)
}

// durable is what is stored about the group; false when no spec of it was accepted yet.
func (g *Group) durable() (strategy.Durable, bool) {
	s := g.Status
	if s.Accepted == nil || s.Realized == nil {
		return strategy.Durable{}, false
	}
	d := strategy.Durable{
		UID: string(g.UID), Generation: s.Accepted.Generation, Config: s.Realized.kernel(),
		Schedule: strategy.Schedule{OnRefresh: s.Accepted.OnRefresh, HydrationEstimate: s.Accepted.HydrationEstimate.Duration},
		Policy:   policyOf(s.Accepted.HydrationBurst),
	}
	if r := s.Reconfiguration; r != nil {
		d.Reconfiguration = strategy.Some(r.kernel())
	}
	if b := s.HydrationBurst; b != nil {
		d.Burst = strategy.Some(b.kernel())
	}
	return d, true
}

// keep writes into the status what the kernel wants stored.
func (s *Status) keep(d strategy.Durable) {
	s.Accepted = &Accepted{
		Generation: d.Generation, OnRefresh: d.Schedule.OnRefresh, HydrationBurst: burstOf(d.Policy),
		HydrationEstimate: metav1.Duration{Duration: d.Schedule.HydrationEstimate},
	}
	realized := configOf(d.Config)
	s.Realized, s.Reconfiguration, s.HydrationBurst = &realized, nil, nil
	if r, ok := d.Reconfiguration.Get(); ok {
		s.Reconfiguration = recordOf(r)
	}
	if b, ok := d.Burst.Get(); ok {
		s.HydrationBurst = burstRecordOf(b)
	}
}

func (c Config) kernel() strategy.Config {
	return strategy.Config{ReplicationFactor: c.Replicas, Shape: strategy.Shape{
		Size: c.Size, AvailabilityZones: strategy.MakeZones(c.Zones...), Template: c.Template,
	}}
}

func configOf(c strategy.Config) Config {
	return Config{
		Shape: c.String(), Replicas: c.ReplicationFactor, Size: c.Shape.Size, Zones: c.Shape.AvailabilityZones.List(), Template: c.Shape.Template,
	}
}

func (r Record) kernel() strategy.Reconfiguration {
	return strategy.Reconfiguration{
		Generation: r.Generation, Target: r.Target.kernel(), Started: strategy.TimeOf(r.Started.Time), Deadline: strategy.TimeOf(r.Deadline.Time),
		OnTimeout: onTimeouts[r.OnTimeout], Status: statuses[r.Status],
	}
}

func recordOf(r strategy.Reconfiguration) *Record {
	return &Record{
		Generation: r.Generation, Target: configOf(r.Target), Started: microTime(r.Started), Deadline: microTime(r.Deadline),
		OnTimeout: r.OnTimeout.String(), Status: r.Status.String(),
	}
}

func (b BurstRecord) kernel() strategy.Burst {
	burst := strategy.Burst{Size: b.Size, Shed: b.Shed}
	if b.HydratedAt != nil {
		burst.HydratedAt = strategy.Some(strategy.TimeOf(b.HydratedAt.Time))
	}
	return burst
}

func burstRecordOf(b strategy.Burst) *BurstRecord {
	record := &BurstRecord{Size: b.Size, Shed: b.Shed}
	if at, ok := b.HydratedAt.Get(); ok {
		t := microTime(at)
		record.HydratedAt = &t
	}
	return record
}

func microTime(t strategy.Time) metav1.MicroTime { return metav1.NewMicroTime(t.UTC()) }
