package schema

import (
	"fmt"
	"time"
)

// Duration is a time.Duration that people write as "1m30s": a string in JSON.
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("cannot read duration %q: %w", text, err)
	}
	*d = Duration(parsed)
	return nil
}

// String is the duration as it is written.
func (d Duration) String() string { return time.Duration(d).String() }

// OpenAPISchema implements Declarer, so that what is no duration is refused before it is stored.
func (Duration) OpenAPISchema() []byte {
	return []byte(`{"type":"string","pattern":"^[-+]?(([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+$|^0$"}`)
}
