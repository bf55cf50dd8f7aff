package strategy

// HydrationBurst adds one replica of another size, as a rule a larger one, while no steady replica is hydrated, so that somebody serves
// sooner. Steady replicas are those of the realized shape.
type HydrationBurst struct{}

// Cause is CauseHydrationBurst.
func (HydrationBurst) Cause() Cause { return CauseHydrationBurst }

// warranted gives the policy of a set that may have a burst.
func warranted(s State, settings Settings) (BurstPolicy, bool) {
	policy, ok := s.Policy.Get()
	ok = ok && settings.BurstEnabled && s.Config.ReplicationFactor > 0 && !s.Schedule.OnRefresh && policy.Size != s.Config.Shape.Size
	return policy, ok
}

// Request asks for hydration wherever a burst may be; whether there is anything to hydrate matters only before it begins.
func (HydrationBurst) Request(s State, settings Settings) Request {
	_, ok := warranted(s, settings)
	return Request{Hydration: ok, HydratableObjects: ok && !s.Burst.Present()}
}

// Update begins, stamps and ends bursts.
func (HydrationBurst) Update(s State, signals Signals, settings Settings, now Time) StateWrite {
	policy, ok := warranted(s, settings)
	burst, running := s.Burst.Get()
	hydrated := signals.hydrated(s, s.Config.Shape) > 0
	switch {
	case running && (!ok || burst.Size != policy.Size):
		return finish(burst, NoLongerWarranted)
	case running:
		return proceed(burst, hydrated, now, now > burst.HydratedAt.Or(now).After(policy.Linger.Or(settings.BurstLinger)))
	case ok && !hydrated && signals.HasHydratableObjects:
		return book(Burst{Size: policy.Size}, Some(Audit{Event: BurstStarted}))
	}
	return StateWrite{}
}

// proceed is what becomes of a burst that is still warranted.
func proceed(burst Burst, hydrated bool, now Time, lingered bool) StateWrite {
	at, stamped := burst.HydratedAt.Get()
	switch {
	case burst.Shed && hydrated:
		return finish(burst, "")
	case burst.Shed:
		return StateWrite{}
	case !hydrated && stamped:
		burst.HydratedAt = Optional[Time]{}
		return book(burst, Optional[Audit]{})
	case hydrated && (!stamped || at > now):
		// A stamp of the future is left from before the clock was set back; it would keep the burst for as long.
		burst.HydratedAt = Some(now)
		return book(burst, Optional[Audit]{})
	case hydrated && lingered:
		return finish(burst, LingerElapsed)
	}
	return StateWrite{}
}

// finish clears the record. The end of one that was shed before is no news.
func finish(burst Burst, why string) StateWrite {
	change := Change[Burst]{Audit: Some(Audit{Event: BurstFinished, Why: why})}
	if burst.Shed {
		change.Audit = Optional[Audit]{}
	}
	return StateWrite{Burst: Set(change)}
}

func book(burst Burst, audit Optional[Audit]) StateWrite {
	return StateWrite{Burst: Set(Change[Burst]{Record: Some(burst), Audit: audit})}
}

// Desired wants the one replica.
func (HydrationBurst) Desired(s State, _ Signals, settings Settings, _ Time) []Slots {
	policy, ok := warranted(s, settings)
	burst, running := s.Burst.Get()
	if !ok || !running || burst.Shed || burst.Size != policy.Size {
		return nil
	}
	return []Slots{{Shape: s.Config.Shape.WithSize(burst.Size), Count: 1, Reason: Reason{Strategy: CauseHydrationBurst}}}
}

// Shed marks the burst as given up.
func (HydrationBurst) Shed(s State) StateWrite {
	burst, running := s.Burst.Get()
	if !running || burst.Shed {
		return StateWrite{}
	}
	return book(Burst{Size: burst.Size, Shed: true}, Some(Audit{Event: BurstShed}))
}
