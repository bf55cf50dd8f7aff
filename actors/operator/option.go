package operator

import (
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"os"

	"github.com/nodeactor/nodeactor/supervision"
)

// Option changes how a ControlPlane runs.
type Option func(*options)

type options struct {
	log   *slog.Logger
	clock supervision.Clock
	node  string
	boot  string
	// system is what the tree runs on.
	system supervision.Config
	// adopt is told of the system before it starts.
	adopt func(*supervision.System)
}

// WithLogger makes it log elsewhere than by the default logger.
func WithLogger(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// WithNodeName names the process among those that share the store: no two that run at a time may have the same name. By default it is
// the host's name with the number of the process.
func WithNodeName(name string) Option { return func(o *options) { o.node = name } }

// WithBoot names this run of the process; each run of a node needs another. By default it is random. For tests whose runs are to be equal.
func WithBoot(boot string) Option { return func(o *options) { o.boot = boot } }

// WithSystem runs it with another clock, source of chance or executor; adopt, if not nil, is told of the system before it starts. For
// tests under virtual time.
func WithSystem(cfg supervision.Config, adopt func(*supervision.System)) Option {
	return func(o *options) { o.system, o.adopt = cfg, adopt }
}

// WithClock runs it by another clock than the machine's.
func WithClock(clock supervision.Clock) Option { return func(o *options) { o.clock = clock } }

func chosen(opts []Option) options {
	o := options{log: slog.Default()}
	for _, opt := range opts {
		opt(&o)
	}
	if o.clock == nil {
		o.clock = o.system.Clock
	}
	if o.clock == nil {
		o.clock = supervision.RealClock()
	}
	if o.node == "" {
		o.node = defaultNode()
	}
	if o.boot == "" {
		o.boot = randomName()
	}
	return o
}

// defaultNode names this process.
func defaultNode() string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	return host + "-" + randomName()
}

// randomName is a name that nobody else has.
func randomName() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}
