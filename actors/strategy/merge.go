package strategy

import (
	"fmt"
	"slices"
)

// Contribution is the write of one strategy.
type Contribution struct {
	Strategy Cause
	Write    StateWrite
}

// Conflict is an alarm: strategies wanted one field of a set to be different things. The field stays as it is.
type Conflict struct {
	Set   SetID
	Field string
	// Strategies are those that wrote the field, in order.
	Strategies []Cause
}

// Error is the alarm for people.
func (c Conflict) Error() string {
	return fmt.Sprintf("cannot merge what strategies %v write to %s of set %s: they exclude each other, so it stays as it is", c.Strategies,
		c.Field, c.Set)
}

// Merge joins what strategies write about one set, field by field. The order of the contributions means nothing. Fields that nobody
// quarrels about are written also when others are frozen.
func Merge(set SetID, contributions []Contribution) (StateWrite, []Conflict) {
	var all StateWrite
	for _, c := range contributions {
		all = all.join(c.Write)
	}
	var conflicts []Conflict
	for _, f := range fieldsOf(all) {
		if !f.frozen {
			continue
		}
		conflicts = append(conflicts, Conflict{Set: set, Field: f.name, Strategies: writers(contributions, f.name)})
	}
	return all.settled(), conflicts
}

func (w StateWrite) join(v StateWrite) StateWrite {
	return StateWrite{
		Size:              w.Size.join(v.Size),
		ReplicationFactor: w.ReplicationFactor.join(v.ReplicationFactor),
		AvailabilityZones: w.AvailabilityZones.join(v.AvailabilityZones),
		Logging:           w.Logging.join(v.Logging),
		Compression:       w.Compression.join(v.Compression),
		Template:          w.Template.join(v.Template),
		Reconfiguration:   w.Reconfiguration.join(v.Reconfiguration),
		Burst:             w.Burst.join(v.Burst),
	}
}

// fieldState is what is known of a field apart from its value.
type fieldState struct {
	name        string
	set, frozen bool
}

func fieldsOf(w StateWrite) []fieldState {
	return []fieldState{
		{"size", w.Size.set, w.Size.frozen},
		{"replicationFactor", w.ReplicationFactor.set, w.ReplicationFactor.frozen},
		{"availabilityZones", w.AvailabilityZones.set, w.AvailabilityZones.frozen},
		{"logging", w.Logging.set, w.Logging.frozen},
		{"compression", w.Compression.set, w.Compression.frozen},
		{"template", w.Template.set, w.Template.frozen},
		{"reconfiguration", w.Reconfiguration.set, w.Reconfiguration.frozen},
		{"burst", w.Burst.set, w.Burst.frozen},
	}
}

// writers lists, in the order of their names, who wrote a field.
func writers(contributions []Contribution, name string) []Cause {
	var causes []Cause
	for _, c := range contributions {
		for _, f := range fieldsOf(c.Write) {
			if f.name == name && (f.set || f.frozen) {
				causes = append(causes, c.Strategy)
			}
		}
	}
	slices.Sort(causes)
	return slices.Compact(causes)
}
