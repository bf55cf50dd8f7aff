package health

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

// storeTimeout bounds the linearizable read of /readyz.
const storeTimeout = 2 * time.Second

// watchEvery is how often the tree is looked at to log what changed.
const watchEvery = 5 * time.Second

var (
	errDraining = errors.New("the node is stopping")
	errNoChild  = errors.New("there are no children")
)

// Config says what is judged.
type Config struct {
	System *supervision.System
	// Root is the path that is cut off the names of the checks.
	Root string
	// Store is a linearizable read.
	Store func(ctx context.Context) error
	// Metrics answers /metrics.
	Metrics http.Handler
	Log     *slog.Logger
}

// Health judges one tree.
type Health struct {
	Config
	draining atomic.Bool

	mu   sync.Mutex
	said map[string]string
	// further are what /readyz asks beside the tree, noted what it tells and passes with.
	further, noted []further
}

type further struct {
	name string
	ask  func() error
}

// Also adds a check to /readyz: something that a part does without while it keeps running. It is called before the node starts.
func (h *Health) Also(name string, ask func() error) {
	h.further = append(h.further, further{name, ask})
}

// Note adds a line to /readyz: something that readers need not care for, so that the node stays ready. Everybody may read what ask
// returns. It is called before the node starts.
func (h *Health) Note(name string, ask func() error) {
	h.noted = append(h.noted, further{name, ask})
}

// Told is the reason of a check that the answer gives to whoever asks; other reasons go to the log.
type Told struct{ Reason error }

// Error is the reason.
func (t Told) Error() string { return t.Reason.Error() }

// Unwrap is the reason.
func (t Told) Unwrap() error { return t.Reason }

// why is what an answer says of a failed check.
func (c check) why() string {
	var told Told
	if errors.As(c.err, &told) {
		return told.Error()
	}
	return "reason withheld"
}

// New makes a judge.
func New(cfg Config) *Health { return &Health{Config: cfg, said: map[string]string{}} }

// Drain fails /readyz from now on.
func (h *Health) Drain() { h.draining.Store(true) }

// check is one line of an answer.
type check struct {
	name string
	err  error
	// alone is set when what is wrong concerns one manifest or pod and not the node.
	alone bool
	// note is set when err is told and fails nothing.
	note bool
}

// ServeHTTP answers the four paths.
func (h *Health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimSuffix(r.URL.Path, "/")
	switch path {
	case "/metrics":
		h.Metrics.ServeHTTP(w, r)
	case "/readyz":
		h.answer(w, r, "readyz", h.ready(r.Context()))
	case "/livez", "/healthz":
		h.answer(w, r, strings.TrimPrefix(path, "/"), h.live())
	default:
		http.NotFound(w, r)
	}
}

// live has a check for each child that passes only while it is alive.
func (h *Health) live() (out []check) {
	for _, v := range verdicts(h.System, h.Root) {
		out = append(out, check{name: v.Name, err: v.Reason, alone: v.Alone})
	}
	if len(out) == 0 {
		out = append(out, check{name: "children", err: errNoChild})
	}
	return out
}

// ready passes a child once it was seen running: one that stalls later is /livez' business, but for a port.
func (h *Health) ready(ctx context.Context) []check {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	out := []check{{name: "store", err: h.Store(ctx)}}
	for _, v := range verdicts(h.System, h.Root) {
		c := check{name: v.Name}
		if !v.Observed && !v.Alone || v.Port {
			c.err = v.Reason
		}
		out = append(out, c)
	}
	for _, f := range h.further {
		out = append(out, check{name: f.name, err: f.ask()})
	}
	for _, f := range h.noted {
		out = append(out, check{name: f.name, err: f.ask(), note: true})
	}
	last := check{name: "shutdown"}
	if h.draining.Load() {
		last.err = errDraining
	}
	return append(out, last)
}

// answer writes the upstream form: "ok", or a line for each check.
func (h *Health) answer(w http.ResponseWriter, r *http.Request, endpoint string, checks []check) {
	var body strings.Builder
	failed := false
	for _, c := range checks {
		if c.err == nil {
			fmt.Fprintf(&body, "[+]%s ok\n", c.name)
			continue
		}
		if c.note {
			fmt.Fprintf(&body, "[~]%s: %v\n", c.name, c.err)
			continue
		}
		if c.alone {
			fmt.Fprintf(&body, "[~]%s ails alone: reason withheld\n", c.name)
			continue
		}
		failed = true
		fmt.Fprintf(&body, "[-]%s failed: %s\n", c.name, c.why())
		h.Log.Debug("health check failed", "endpoint", endpoint, "check", c.name, "reason", c.err)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	verbose := r.URL.Query().Has("verbose")
	switch {
	case failed:
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(&body, "%s check failed\n", endpoint)
	case verbose:
		fmt.Fprintf(&body, "%s check passed\n", endpoint)
	default:
		body.Reset()
		body.WriteString("ok")
	}
	_, _ = io.WriteString(w, body.String())
}

// Child is the actor that logs each change of a verdict once, and finds out which actors use
// the processor while it is busy.
func (h *Health) Child() supervision.Handler {
	return &child{Health: h, every: watchEvery, span: measureFor, used: processorTime}
}

type child struct {
	*Health
	meter meter
	// every is the time between two looks, span how long CPU shares are measured.
	every, span time.Duration
	// used is the processor time of the process so far.
	used func() time.Duration
}

// look is the message that the child sends itself.
type look struct{}

// Receive implements supervision.Handler.
func (c *child) Receive(ctx supervision.Context, msg any) error {
	switch m := msg.(type) {
	case supervision.Started, look:
		c.logChanges()
		c.measure(ctx)
		ctx.After(c.every, look{})
	case supervision.JobDone:
		if m.Err != nil && !errors.Is(m.Err, supervision.ErrMeasuring) {
			c.Log.Warn("CPU shares are not measured", "reason", m.Err)
		}
	}
	return nil
}

func (h *Health) logChanges() {
	now := map[string]string{}
	for _, v := range verdicts(h.System, h.Root) {
		if v.Reason != nil && v.Observed && !v.Passing {
			now[v.Name] = v.Reason.Error()
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, why := range now {
		if _, known := h.said[name]; !known {
			h.Log.Warn("part is not healthy", "part", name, "why", why)
		}
	}
	for name := range h.said {
		if _, still := now[name]; !still {
			h.Log.Info("part is healthy again", "part", name)
		}
	}
	h.said = now
}
