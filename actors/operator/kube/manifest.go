package kube

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/hotloop"
	"github.com/nodeactor/nodeactor/supervision"
)

// Waits of a manifest's actor.
const (
	// passDeadline bounds one pass; a pass that does not end then is a hang of its actor.
	passDeadline = 60 * time.Second
	// syncDeadline bounds the wait for the cache to show what was written before the pass.
	syncDeadline = 10 * time.Second
	// maxHanging is how many passes of one manifest may hang before no further one is tried; hangLook how often it is looked whether
	// they returned.
	maxHanging, hangLook = 2, 10 * time.Second
	// pauseSlack is how much longer than its pause the job that waits it out may take.
	pauseSlack = 10 * time.Second
)

// Names of jobs: passJob of a pass, pauseJob, with the reason behind it, of a pause.
const (
	passJob  = "pass"
	pauseJob = "HotLoop "
)

// wake tells a manifest's actor that something it reads changed at a revision. number counts the wakes of this manifest.
type wake struct {
	revision int64
	number   uint64
}

// tick tells a manifest's actor that a pass may be due.
type tick struct{}

// passResult is what one pass comes to.
type passResult struct {
	action Action
	err    error
	// gone is set when the manifest does not exist.
	gone bool
}

// manifest is the actor of one manifest.
type manifest struct {
	controller *Controller
	reconciler Reconciler
	deps       Deps
	key        Key
	board      *board
	outage     *outage

	gate *gate
	// number is that of the last wake.
	number uint64
	// seen is the revision the running or last pass saw; a wake of an older change is no news.
	seen atomic.Int64
	// resting is set while a pause of the breaker is waited out.
	resting bool
	// disarm cancels the armed tick; armed is when it fires.
	disarm func()
	armed  time.Time
}

// Receive implements supervision.Handler.
func (m *manifest) Receive(ctx supervision.Context, msg any) error {
	switch msg := msg.(type) {
	case supervision.Started:
		m.gate = newGate(DefaultTimings, spreadOf(m.key), m.deps.Clock.Now())
	case wake:
		m.number = msg.number
		if msg.revision <= m.seen.Load() {
			return nil
		}
		m.gate.wake(m.deps.Clock.Now())
	case tick:
		m.armed = time.Time{}
	case supervision.JobDone:
		m.jobDone(msg)
	default:
		return nil
	}
	m.turn(ctx)
	return nil
}

func (m *manifest) jobDone(done supervision.JobDone) {
	if done.Name == passJob {
		m.finish(done)
		return
	}
	m.resting = false
	m.gate.wake(m.deps.Clock.Now())
}

// turn starts the pass that is due or arms a tick for the one that will be.
func (m *manifest) turn(ctx supervision.Context) {
	if m.held(ctx) {
		return
	}
	now := m.deps.Clock.Now()
	if m.gate.isDue(now) {
		m.gate.hold(m.mustWait(now), now)
	}
	if m.gate.begin(now) {
		ctx.Go(supervision.Job{Name: passJob, Deadline: passDeadline, Run: func(ctx context.Context, _ func()) (any, error) {
			m.board.enter(m.key)
			defer m.board.leave(m.key)
			return m.pass(ctx), nil
		}})
		return
	}
	if m.gate.running || m.armed.Equal(m.gate.due) {
		return
	}
	if m.disarm != nil {
		m.disarm()
	}
	m.armed = m.gate.due
	m.disarm = ctx.After(m.gate.due.Sub(now), tick{})
}

// mustWait is how long a pass that is due has to wait: for an outage to end, or for passes of abandoned actors to return, each of which
// holds a goroutine that nobody can take from it.
func (m *manifest) mustWait(now time.Time) time.Duration {
	if m.board.hanging(m.key) >= maxHanging {
		return hangLook
	}
	return m.outage.admit(now, m.spread())
}

// held waits a pause of the breaker out, in a job whose name shows it in the tree. A pause may be forgiven before its job ends.
func (m *manifest) held(ctx supervision.Context) bool {
	trip, paused := m.deps.Breaker.paused(m.writer())
	if !paused || m.gate.running {
		return false
	}
	if m.resting {
		return true
	}
	m.resting = true
	wait := trip.Until.Sub(m.deps.Clock.Now())
	ctx.Go(supervision.Job{Name: pauseJob + trip.Reason.String(), Deadline: wait + pauseSlack, Run: func(ctx context.Context, _ func()) (any, error) {
		return nil, m.deps.Clock.Sleep(ctx, wait)
	}})
	return true
}

func (m *manifest) writer() hotloop.Writer { return writerOf(m.controller.Name, m.key) }

// spread is the manifest's place between 0 and 1.
func (m *manifest) spread() float64 { return m.gate.jitter }

// pass runs one pass on a state that holds everything written before it.
func (m *manifest) pass(ctx context.Context) passResult {
	if err := synced(ctx, m.deps.Cache); err != nil {
		return passResult{err: err}
	}
	m.seen.Store(m.deps.Cache.Applied())
	if !m.controller.live(m.deps.Cache, m.key) {
		return passResult{gone: true}
	}
	if err := m.inject(ctx); err != nil {
		return passResult{err: err}
	}
	action, err := m.reconciler.Reconcile(withWriter(ctx, m.writer()), m.key)
	return passResult{action: action, err: err}
}

// synced waits until the cache shows all that was written before, for syncDeadline at most.
func synced(ctx context.Context, reader *cache.Cache) error {
	ctx, cancel := context.WithTimeout(ctx, syncDeadline)
	defer cancel()
	return reader.Sync(ctx)
}

// finish notes the end of a pass. An actor that is not needed any more asks the board to end it.
func (m *manifest) finish(done supervision.JobDone) {
	result, ok := done.Value.(passResult)
	if !ok {
		result.err = errors.Join(errNoResult, done.Err)
	}
	how := outcomeOf(result.err)
	now := m.deps.Clock.Now()
	if m.noteOutage(now, result.err) {
		how = paused // nobody's fault, and the outage says when the next pass may begin
	}
	woken := m.gate.pending
	m.gate.end(now, how, result.action.After)
	m.deps.Metrics.count(m.controller.Name, how, result.action, now)
	m.tell(how, result.err)
	if how == succeeded && (result.gone || result.action.Done) && !woken {
		m.board.retire(m.key, m.number)
	}
}

// noteOutage tells whether a pass failed only because nobody answers anybody.
func (m *manifest) noteOutage(now time.Time, err error) bool {
	away, changed := m.outage.note(now, m.key, m.spread(), err)
	switch {
	case changed && away:
		m.deps.Log.Warn("nobody answers this controller, it tries once a second", "controller", m.controller.Name, "cause", err)
	case changed:
		m.deps.Log.Info("this controller is answered again", "controller", m.controller.Name)
	}
	return away
}

// tell passes on how the pass ended.
func (m *manifest) tell(how outcome, err error) {
	switch how {
	case succeeded:
		m.deps.Reporter.well(m.controller.Name, m.key)
	case failed:
		m.deps.Reporter.failed(m.controller.Name, m.key, m.gate.failures, err)
		m.deps.Log.Warn("a pass failed and is retried", "controller", m.controller.Name, "manifest", m.key.String(),
			"failures", m.gate.failures, "cause", err)
	}
}

// errNoResult is returned when a pass ended without a result, which its deadline or its stop does.
var errNoResult = errors.New("the pass did not come to an end")

// outcomeOf tells races with other writers from failures.
func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return succeeded
	case errors.Is(err, ErrPaused):
		return paused
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err):
		return conflicted
	}
	return failed
}

// spreadOf gives each manifest its place between 0 and 1, so that fallbacks do not meet.
func spreadOf(key Key) float64 {
	h := fnv.New32a()
	fmt.Fprint(h, key)
	return float64(h.Sum32()%1000) / 1000
}
