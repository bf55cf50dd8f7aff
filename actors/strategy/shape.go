package strategy

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Zones is a set of availability zones: order and repetition mean nothing. The empty set leaves the choice to the scheduler. Two sets
// can be compared with ==.
type Zones struct{ joined string }

// zoneSeparator cannot be part of a zone's name, which is the value of a label.
const zoneSeparator = ","

// MakeZones gives the set of the names; empty names are left out.
func MakeZones(names ...string) Zones {
	sorted := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "" })
	slices.Sort(sorted)
	return Zones{joined: strings.Join(slices.Compact(sorted), zoneSeparator)}
}

// List gives the names in order; it belongs to the caller.
func (z Zones) List() []string {
	if z.joined == "" {
		return nil
	}
	return strings.Split(z.joined, zoneSeparator)
}

// String is the set for people.
func (z Zones) String() string { return "{" + z.joined + "}" }

// Logging says what replicas log about themselves.
type Logging struct {
	// Interval is the time between two reports, zero for none.
	Interval time.Duration
	// Debug also logs what the logging does.
	Debug bool
}

// Shape is what makes replicas interchangeable.
type Shape struct {
	// Size names a size class, which gives cpu and memory.
	Size              string
	AvailabilityZones Zones
	Logging           Logging
	// Compression says whether replicas keep what they hold in memory compressed.
	Compression bool
	// Template names what replicas are made from, as a version of it; empty where there is only one.
	Template string
}

// WithSize is the same shape in another size.
func (s Shape) WithSize(size string) Shape {
	s.Size = size
	return s
}

// String is the shape for people; what is usual is left out.
func (s Shape) String() string {
	text := s.Size
	if s.AvailabilityZones != (Zones{}) {
		text += s.AvailabilityZones.String()
	}
	if s.Logging != (Logging{}) {
		text += fmt.Sprintf(" logging=%v", s.Logging.Interval)
		if s.Logging.Debug {
			text += "+debug"
		}
	}
	if s.Compression {
		text += " compressed"
	}
	if s.Template != "" {
		text += "@" + s.Template
	}
	return text
}

// Config is how many replicas of which shape serve a set.
type Config struct {
	ReplicationFactor int
	Shape             Shape
}

// String is the config for people.
func (c Config) String() string { return fmt.Sprintf("%d x %s", c.ReplicationFactor, c.Shape) }
