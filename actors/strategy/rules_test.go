package strategy

import (
	"slices"
	"strings"
)

// judged is called with each batch that the catalog is about to apply: the rules say whether it may.
func (s *storm) judged(b Batch, apply func()) {
	i, one := s.items[b.Set], s.seen[b.Set]
	s.assert(one.version == i.version, "%s: decided from version %d, applied to %d", b.Set, one.version, i.version)
	s.assert(one.Durable == i.Durable, "%s: decided from another state", b.Set)
	before := i.Durable
	apply()
	after := i.Durable
	s.configRule(one, before, after, b)
	s.recordRule(one, before, after)
	s.burstRule(one, before, after)
	s.assert(after.Generation == before.Generation && after.Schedule == before.Schedule && after.Policy == before.Policy,
		"%s: the spec was written", b.Set)
	if b.Update.Empty() {
		s.replicaRule(one, b)
	}
}

// ready tells how many hydrated replicas of the shape the kernel has been told of.
func (o *sighting) ready(shape Shape) int {
	n := 0
	for _, r := range o.Replicas {
		if r.Shape == shape && o.hydrated[r.ID] {
			n++
		}
	}
	return n
}

// configRule: what is realized changes only for the target of the record, all at once, when it is hydrated or forced; or becomes none
// because of a schedule.
func (s *storm) configRule(one *sighting, before, after Durable, b Batch) {
	if before.Config == after.Config && before.Reconfiguration == after.Reconfiguration {
		return
	}
	r, busy := before.InFlight()
	if !busy {
		normal := before
		normal.Config.ReplicationFactor = 0
		s.assert(before.Schedule.OnRefresh && after.Config == normal.Config, "%s: realized %s became %s", one.ID, before.Config, after.Config)
		s.reached["rf 0"]++
		return
	}
	now, _ := after.Reconfiguration.Get()
	if now.Status != Finalized {
		s.assert(before.Config == after.Config, "%s: realized %s became %s without a cut-over", one.ID, before.Config, after.Config)
		return
	}
	s.assert(after.Config == r.Target, "%s: cut over to %s, not to %s", one.ID, after.Config, r.Target)
	hydrated := one.ready(r.Target.Shape) >= r.Target.ReplicationFactor
	forced := one.now >= r.Deadline && r.OnTimeout == Commit
	s.assert(hydrated || forced, "%s: cut over too early", one.ID)
	s.reached["cut-over"]++
	if !hydrated {
		s.reached["forced"]++
	}
	for _, audit := range b.Audits() {
		s.assert(audit.Event != ReconfigurationFinalized || audit.Forced != hydrated, "%s: audit %s", one.ID, audit)
	}
}

// recordRule: the kernel ends reconfigurations, once, and changes nothing else about them.
func (s *storm) recordRule(one *sighting, before, after Durable) {
	if before.Reconfiguration == after.Reconfiguration {
		return
	}
	old, busy := before.InFlight()
	now, there := after.Reconfiguration.Get()
	s.assert(busy && there, "%s: a record that is no business of the kernel", one.ID)
	status := now.Status
	now.Status = InProgress
	s.assert(now == old, "%s: the record was changed to %s", one.ID, now)
	switch status {
	case Finalized:
	case TimedOut:
		s.assert(one.now >= old.Deadline && old.OnTimeout == Rollback, "%s: timed out too early", one.ID)
		s.assert(one.ready(old.Target.Shape) < old.Target.ReplicationFactor, "%s: timed out though hydrated", one.ID)
		s.reached["timed out"]++
	case ResourceExhausted:
		burst, ok := before.Burst.Get()
		s.assert(one.sheds == 1, "%s: shed without need", one.ID)
		s.assert(!ok || burst.Shed, "%s: shed before the burst", one.ID)
		s.reached["reconfiguration shed"]++
	default:
		s.assert(false, "%s: the record became %s", one.ID, status)
	}
}

// burstRule: a burst begins when nothing steady is hydrated, ends when its linger or its reason does, and is given up only for room.
func (s *storm) burstRule(one *sighting, before, after Durable) {
	if before.Burst == after.Burst {
		return
	}
	old, was := before.Burst.Get()
	now, is := after.Burst.Get()
	policy, ok := before.Policy.Get()
	ok = ok && s.latched.BurstEnabled && before.Config.ReplicationFactor > 0 && !before.Schedule.OnRefresh && policy.Size != before.Config.Shape.Size
	steady := one.ready(before.Config.Shape) > 0
	switch {
	case !was:
		s.assert(ok && !steady && one.objects && now == Burst{Size: policy.Size}, "%s: burst %+v begins", one.ID, now)
		s.reached["burst"]++
	case is && now.Shed:
		s.assert(one.sheds == 1 && !old.Shed, "%s: the burst is shed without need", one.ID)
		s.reached["burst shed"]++
	case is:
		stamp, stamped := now.HydratedAt.Get()
		s.assert(stamped == steady && (!stamped || stamp == one.now), "%s: burst %+v", one.ID, now)
	case ok && old.Size == policy.Size:
		stamp, stamped := old.HydratedAt.Get()
		linger := policy.Linger.Or(s.latched.BurstLinger)
		s.assert(steady && (old.Shed || stamped && one.now > stamp.After(linger)), "%s: burst %+v ends", one.ID, old)
		s.reached["burst lingered"]++
	default:
		s.reached["burst not warranted"]++
	}
}

// wish is how many replicas of a shape there have to be, and why, as the description of the strategies says it.
type wish struct {
	shape  Shape
	count  int
	causes []Cause
}

func (s *storm) wishes(one *sighting) []wish {
	var all []wish
	want := func(shape Shape, count int, cause Cause) {
		for i := range all {
			if all[i].shape == shape && count > 0 {
				all[i].count, all[i].causes = max(all[i].count, count), append(all[i].causes, cause)
				return
			}
		}
		if count > 0 {
			all = append(all, wish{shape, count, []Cause{cause}})
		}
	}
	realized := one.Config
	if !one.Schedule.OnRefresh {
		want(realized.Shape, realized.ReplicationFactor, CauseBaseline)
	}
	if r, busy := one.InFlight(); busy {
		n := r.Target.ReplicationFactor
		if one.now >= r.Deadline {
			n = min(n, one.count(r.Target.Shape))
		}
		want(r.Target.Shape, n, CauseGracefulReconfiguration)
	}
	policy, ok := one.Policy.Get()
	burst, is := one.Burst.Get()
	if ok && is && !burst.Shed && burst.Size == policy.Size && s.latched.BurstEnabled && realized.ReplicationFactor > 0 &&
		!one.Schedule.OnRefresh && burst.Size != realized.Shape.Size {
		want(realized.Shape.WithSize(burst.Size), 1, CauseHydrationBurst)
	}
	if one.Schedule.OnRefresh && one.windowOpen() {
		want(realized.Shape, 1, CauseOnRefresh)
		s.reached["window"]++
	}
	return all
}

// windowOpen computes the window of objects whose interval is a minute, aligned to their frontier.
func (o *sighting) windowOpen() bool {
	if o.refresh == nil {
		return false
	}
	return slices.ContainsFunc(o.refresh.Objects, func(object RefreshObject) bool {
		frontier, _ := object.Frontier.Get()
		read := int64(o.refresh.ReadTimestamp)
		due := int64(frontier) < read+o.Schedule.HydrationEstimate.Microseconds()
		return due || int64(frontier)-60_000_000+o.refresh.CompactionEstimate.Microseconds() > read
	})
}

// replicaRule: after the batch there is exactly what somebody wants. So no strategy loses what another gains, what is realized is never
// fewer than it has to be, and there is one burst. Of a surplus what is hydrated stays.
func (s *storm) replicaRule(one *sighting, b Batch) {
	left := slices.Clone(one.Replicas)
	for _, d := range b.Drops {
		n := len(left)
		left = slices.DeleteFunc(left, func(r Replica) bool { return r == Replica(d) })
		s.assert(len(left) == n-1, "%s: drops %s, which was not there", one.ID, d.Name)
	}
	highest := 0
	for _, r := range one.Replicas {
		if n, ok := indexOf(r.Name); ok {
			highest = max(highest, n)
		}
	}
	wishes := s.wishes(one)
	for _, c := range b.Creates {
		n, ok := indexOf(c.Name)
		s.assert(ok && n > highest, "%s: the name %s after %d", one.ID, c.Name, highest)
		highest = n
		left = append(left, Replica{Name: c.Name, Shape: c.Shape})
		for _, w := range wishes {
			if w.shape == c.Shape {
				s.assert(c.Reasons[0].Strategy == w.causes[0], "%s: %s is for %v", one.ID, c.Name, c.Reasons)
			}
		}
	}
	for _, w := range wishes {
		n := len(left)
		left = slices.DeleteFunc(left, func(r Replica) bool { return r.Shape == w.shape })
		s.assert(n-len(left) == w.count, "%s: %d of %s, %v want %d", one.ID, n-len(left), w.shape, w.causes, w.count)
		s.surplusRule(one, b, w)
	}
	s.assert(len(left) == 0, "%s: nobody wants %v", one.ID, left)
}

func (s *storm) surplusRule(one *sighting, b Batch, w wish) {
	dropped := func(r Replica) bool {
		return slices.ContainsFunc(b.Drops, func(d Drop) bool { return d.ID == r.ID })
	}
	hydratedGoes, dryStays := false, false
	for _, r := range one.Replicas {
		if r.Shape == w.shape {
			hydratedGoes = hydratedGoes || dropped(r) && one.hydrated[r.ID]
			dryStays = dryStays || !dropped(r) && !one.hydrated[r.ID]
		}
	}
	if one.count(w.shape) > w.count {
		s.assert(one.asked, "%s: chooses blindly what goes", one.ID)
		s.reached["surplus"]++
	}
	s.assert(!hydratedGoes || !dryStays, "%s: a hydrated replica goes and a dry one stays", one.ID)
}

// shedRule: when there was no room, exactly one strategy is given up if there is one to give up.
func (s *storm) shedRule() {
	for _, one := range s.seen {
		if one.changes == 0 || one.last != Exhausted {
			continue // Another batch came after it, or there was room.
		}
		burst, is := one.Burst.Get()
		_, busy := one.InFlight()
		s.assert(!busy && (!is || burst.Shed), "%s: no room, and nothing was given up", one.ID)
		s.reached["nothing to shed"]++
	}
}

// barrierRule: the sets are read again when something was written about one of them, and only then.
func (s *storm) barrierRule(looks int) {
	written := 0
	for _, one := range s.seen {
		written = max(written, one.updates)
	}
	s.assert(s.twins || looks == 0 && len(s.seen) == 0 || looks == 1+written, "the sets were read %d times", looks)
}

// stillRule: at rest nothing is left that should have been done.
func (s *storm) stillRule() {
	for id, i := range s.items {
		_, steady := i.count(i.Config.Shape)
		if burst, ok := i.Burst.Get(); ok {
			policy, wanted := i.Policy.Get()
			s.assert(wanted && policy.Size == burst.Size && i.Config.ReplicationFactor > 0 && s.settings.BurstEnabled, "%s: a burst at rest", id)
			stamp, stamped := burst.HydratedAt.Get()
			s.assert(stamped == (steady > 0) && stamp <= s.now, "%s: burst %+v at rest, %d hydrated", id, burst, steady)
		}
		r, busy := i.InFlight()
		_, ready := i.count(r.Target.Shape)
		s.assert(!busy || s.now < r.Deadline && ready < r.Target.ReplicationFactor, "%s: at rest, %s", id, i.View())
		s.assert(busy || !i.Schedule.OnRefresh || i.Config.ReplicationFactor == 0, "%s: at rest, %s", id, i.View())
	}
}

// foldRule: a change of the spec is written down, and nothing else.
func (s *storm) foldRule(kind FoldKind, err error, before Durable, i *item) {
	if err != nil {
		s.assert(i.Durable == before, "a refused spec changed %+v", i.Durable)
		return
	}
	s.assert(i.Generation == before.Generation+1 && i.Policy == i.spec.Policy && i.Schedule == i.spec.Schedule, "folded to %+v", i.Durable)
	s.assert(i.Burst == before.Burst, "a fold wrote the burst")
	want := before.Config
	if kind == Direct {
		want.ReplicationFactor = i.spec.Config.ReplicationFactor
	}
	s.assert(i.Config == want, "folded %s to %s", before.Config, i.Config)
	old, was := before.InFlight()
	now, is := i.InFlight()
	timeout := i.spec.Wait.Timeout.Or(DefaultTimeout)
	switch kind {
	case Started, Retargeted:
		from := s.now
		if was && old.Target == now.Target {
			from = old.Started
		}
		s.assert(was == (kind == Retargeted) && is && now.Started == from && now.Deadline == from.After(timeout), "%s to %s", kind, now)
		s.assert(now.Target.Shape == i.spec.Config.Shape && now.OnTimeout == i.spec.Wait.OnTimeout, "%s to %s", kind, now)
	case CancelledBack:
		s.assert(was && !is && i.Config.Shape == i.spec.Config.Shape, "cancelled: %s", i.View())
	default:
		s.assert(i.Reconfiguration == before.Reconfiguration, "%s wrote a record", kind)
	}
	s.assert(!is || now.Target != i.Config, "%s: on the way to what is realized", kind)
	s.assert(is || i.Config.Shape == i.spec.Config.Shape, "%s: folded to %s, declared %s", kind, i.View(), i.spec.Config)
}

// identityRule: names within a set and identities at all.
func (s *storm) identityRule() {
	ids := map[ReplicaID]bool{}
	for id, i := range s.items {
		names := map[string]bool{}
		for _, r := range i.replicas {
			s.assert(!names[r.Name] && !ids[r.ID], "%s: %s twice", id, r.Name)
			names[r.Name], ids[r.ID] = true, true
		}
	}
}

// auditRule: what was made and ended was told.
func (s *storm) auditRule(audits []string) {
	for _, audit := range audits {
		if strings.Contains(audit, "ReplicaDropped") {
			s.assert(strings.HasSuffix(audit, "(retired)"), "audit %s", audit)
		}
	}
}
