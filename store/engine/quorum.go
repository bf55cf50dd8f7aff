package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

const (
	// attendEvery is how often a member with others looks whether there is a leader.
	attendEvery = 100 * time.Millisecond
	// leaderlessFor is how long an election may take before the quorum counts as lost. Calls wait for as long.
	leaderlessFor = time.Second
	// doubtAfter is for how long there is no leader when the others are first asked whether they are there, askPeerFor how long an answer
	// may take, and askAgain how long it is believed.
	doubtAfter = 300 * time.Millisecond
	askPeerFor = 500 * time.Millisecond
	askAgain   = time.Second
)

// ErrNoQuorum is returned when too few members answer for the store to go on; the error names the missing ones.
var ErrNoQuorum = errors.New("the store has no quorum")

// Outage is a time without a quorum.
type Outage struct {
	Since   time.Time
	Missing []string // names of the members that do not answer; none when all do and cannot agree on a leader
	Members int

	asked time.Time // when they were asked
}

// Error implements error.
func (o *Outage) Error() string {
	who := "all members answer, but have no leader"
	if len(o.Missing) > 0 {
		who = fmt.Sprintf("%s of %d members missing", strings.Join(o.Missing, ", "), o.Members)
	}
	return fmt.Sprintf("%v since %s: %s; bring them back, or wait for them", ErrNoQuorum, o.Since.UTC().Format(time.RFC3339), who)
}

// Is makes an outage ErrNoQuorum, and a store that takes no writes for now.
func (o *Outage) Is(target error) bool { return target == ErrNoQuorum || target == ErrStalled }

// quorum knows whether the members have a leader, and ends the calls that wait for one.
type quorum struct {
	mu sync.Mutex
	// leaderless is since when there has been no leader, zero while there is one.
	leaderless time.Time
	outage     *Outage
	calls      map[*call]struct{}
}

// call is one that waits for the others.
type call struct{ end context.CancelCauseFunc }

// lost is the outage that lasts, or nil.
func (q *quorum) lost() *Outage {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.outage
}

// guard returns a context that ends with an outage as its cause. Without a quorum it refuses.
func (q *quorum) guard(ctx context.Context, clock supervision.Clock) (context.Context, func(), error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.outage != nil {
		return ctx, func() {}, q.outage
	}
	ctx, end := context.WithCancelCause(ctx)
	c := &call{end}
	if q.calls == nil {
		q.calls = map[*call]struct{}{}
	}
	q.calls[c] = struct{}{}
	return ctx, func() {
		q.mu.Lock()
		delete(q.calls, c)
		q.mu.Unlock()
		end(nil)
	}, nil
}

// begin declares an outage, and ends the calls that would wait for it to pass.
func (q *quorum) begin(o *Outage) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.outage = o
	for c := range q.calls {
		c.end(o)
	}
	clear(q.calls)
}

// look notes whether there is a leader. It tells for how long there has been none, and how long an outage has just ended, 0 for none.
func (q *quorum) look(now time.Time, leader bool) (without, ended time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case leader && q.outage != nil:
		ended = max(now.Sub(q.outage.Since), 1)
		fallthrough
	case leader:
		q.leaderless, q.outage = time.Time{}, nil
	case q.leaderless.IsZero():
		q.leaderless = now
	default:
		without = now.Sub(q.leaderless)
	}
	return without, ended
}

// attend watches over a member with others until it ends.
func (m *Member) attend(ctx context.Context) error {
	agreed := m.clock.Now().Add(min(compareFirst, m.compareEvery()) - m.compareEvery())
	for m.clock.Sleep(ctx, attendEvery) == nil {
		select {
		case <-m.server.StopNotify():
			m.failed.set(m.whyStopped())
			return nil
		default:
		}
		m.recount()
		m.attendQuorum(ctx)
		if now := m.clock.Now(); now.Sub(agreed) >= m.compareEvery() {
			agreed = now
			m.compareBeside()
		}
	}
	return nil
}

// whyStopped tells why a member has ended by itself.
func (m *Member) whyStopped() error {
	if err := m.Err(); err != nil {
		return err
	}
	return removed(m.dir)
}

func removed(dir string) error {
	return fmt.Errorf("%w: put %s aside and join anew to have it back", ErrRemoved, dir)
}

// attendQuorum notes and says when the quorum is lost and when it is there again: one line each.
func (m *Member) attendQuorum(ctx context.Context) {
	without, ended := m.quorum.look(m.clock.Now(), m.server.Leader() != 0)
	if ended > 0 {
		m.log.Info("the store has its quorum again", "after", ended.Round(time.Millisecond), "leader", m.label(uint64(m.server.Leader())))
	}
	if without < doubtAfter {
		return
	}
	last := m.quorum.lost()
	if last != nil && m.clock.Now().Sub(last.asked) < askAgain {
		return
	}
	o := &Outage{Since: m.clock.Now().Add(-without), Missing: m.missing(ctx), Members: len(m.Members()), asked: m.clock.Now()}
	if m.clock.Now().Sub(o.Since) < leaderlessFor && m.clock.Sleep(ctx, leaderlessFor-m.clock.Now().Sub(o.Since)) != nil || m.server.Leader() != 0 {
		return
	}
	m.quorum.begin(o)
	if last == nil {
		m.log.Warn("the store has lost its quorum: writes and consistent reads are refused", "missing", o.Missing, "members", m.names())
	}
}

// missing asks the others whether they are there.
func (m *Member) missing(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, askPeerFor)
	defer cancel()
	others := m.others()
	absent := make(chan string, len(others))
	for name, url := range others {
		m.group.Go("ask member", func(context.Context) error { return m.askPeer(ctx, url) }, func(err error) {
			if err == nil {
				name = ""
			}
			absent <- name
		})
	}
	var names []string
	for range others {
		if name := <-absent; name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (m *Member) askPeer(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/version", nil)
	if err != nil {
		return err
	}
	resp, err := m.peerClient.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// noLeader is the error of a start that waited for one in vain; it names the members that do not answer.
func (m *Member) noLeader(ctx context.Context, err error) error {
	if m.peers == nil || m.Err() != nil {
		return fmt.Errorf("no leader: %w", err)
	}
	o := Outage{Since: m.clock.Now(), Missing: m.missing(context.WithoutCancel(ctx)), Members: len(m.Members())}
	return fmt.Errorf("no leader: %w: %w", err, &o)
}

// Outage is the outage that lasts, nil while there is a quorum.
func (m *Member) Outage() *Outage { return m.quorum.lost() }

// libraryLog is where the library's messages go. One with others complains of them many times a minute while they are away; what matters of
// that is said by attendQuorum, once.
func (m *Member) libraryLog() *slog.Logger {
	if m.peers == nil {
		return m.log
	}
	return slog.New(hushed{m.log.Handler()})
}

// hushed makes news detail.
type hushed struct{ slog.Handler }

func quieter(l slog.Level) slog.Level {
	if l == slog.LevelInfo {
		return slog.LevelDebug
	}
	return l
}

// Enabled implements slog.Handler.
func (q hushed) Enabled(ctx context.Context, l slog.Level) bool {
	return q.Handler.Enabled(ctx, quieter(l))
}

// Handle implements slog.Handler.
func (q hushed) Handle(ctx context.Context, r slog.Record) error {
	r.Level = quieter(r.Level)
	return q.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (q hushed) WithAttrs(attrs []slog.Attr) slog.Handler { return hushed{q.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (q hushed) WithGroup(name string) slog.Handler { return hushed{q.Handler.WithGroup(name)} }
