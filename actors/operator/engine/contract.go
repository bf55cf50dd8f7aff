package engine

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

// ErrLost is returned when a Feed has lost wakes: the manifests there are have to be listed again. The feed goes on with what comes next.
var ErrLost = errors.New("wakes were lost, list again")

// ErrRequeuePast is returned when a pass asks to be run again before it has ended.
var ErrRequeuePast = errors.New("a pass asks to be run again in the past")

// Key names one manifest.
type Key struct{ Namespace, Name string }

// keySeparator joins the parts of a Key to an actor's name; it cannot occur in either part.
const keySeparator = ":"

// String is the key as a path segment.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + keySeparator + k.Name
}

// ParseKey reads what String wrote.
func ParseKey(s string) Key {
	namespace, name, ok := strings.Cut(s, keySeparator)
	if !ok {
		return Key{Name: s}
	}
	return Key{Namespace: namespace, Name: name}
}

// Wake says that something changed which concerns a manifest.
type Wake struct {
	Key Key
	// Revision is that of the newest change.
	Revision uint64
	// Mends tells whether the change may have removed what the manifest's passes fail of. Then a manifest that waits for its next try
	// after a fault has it at once. It is asked only of such. Nil for no.
	Mends func() bool
}

// Source is where manifests come from. Revisions are those of one store: they grow, and 0 is before all.
type Source interface {
	// Subscribe opens a feed of what wakes manifests from now on. notify is called when there may be something to take, from any
	// goroutine; it never blocks. Calls may be folded into one.
	Subscribe(notify func()) Feed
	// Sync returns when what is read from now on holds everything that was written before the call, and the revision up to which it does.
	// An error means that nobody answers. It is called before every pass.
	Sync(ctx context.Context) (revision uint64, err error)
	// Has tells whether a manifest exists.
	Has(key Key) bool
	// Keys visits the manifests there are, until visit returns false. The revision is that of the last change which the manifest's
	// passes have to see; 0 if that is not known, and then wakes that were missed are only made good by the resync.
	Keys(visit func(key Key, revision uint64) bool)
}

// Awaiting is a Source that may have nothing to read yet. The engine begins when Ready is true; notify is to be called when it becomes so.
type Awaiting interface{ Ready() bool }

// Feed is a running subscription. One goroutine at a time takes from it.
type Feed interface {
	// Take gives the wakes since the last call, each manifest once, in an order that nothing but the changes decides; it never waits. ErrLost
	// is returned when some are missing.
	Take() ([]Wake, error)
	// Close ends the feed.
	Close()
}

// Outcome is how a pass ended. New ones go at the end.
type Outcome uint8

// The outcomes.
const (
	// Succeeded: there is nothing to do until something changes.
	Succeeded Outcome = iota
	// Failed: it is run again after the back-off.
	Failed
	// Conflicted: it lost a race with another writer and is run again at once. Several in a row count as a failure.
	Conflicted
	// Interrupted: it was cut off, which says nothing about the manifest; it is run again as soon as it may be.
	Interrupted
	// Unanswered: nobody answered. That is a failure, unless it is everybody's: then it is Interrupted.
	Unanswered
	// Gone: there is nothing more to do for the manifest; it is forgotten until a wake or the list of the source names it again.
	Gone
)

// Result is what one pass came to.
type Result struct {
	Outcome Outcome
	// After runs another pass after this time if no change does so earlier; 0 for none, less is ErrRequeuePast. Of a pass that Failed it
	// is the wait until the next try; 0 leaves that to the engine's back-off.
	After time.Duration
	// Err is why it did not succeed.
	Err error
}

// Pass is one run of a manifest.
type Pass struct {
	Key Key
	// Token is what Start gave for it.
	Token any
	// Failures is how many passes before it failed in a row.
	Failures int
}

// Report tells how a pass ended.
type Report struct {
	Pass
	// Result is what it came to; its outcome is never Unanswered.
	Result Result
	// Failures is how many passes have failed in a row, this one included.
	Failures int
	// Began and Ended are by the clock of the system.
	Began, Ended time.Time
}

// Pause is a time in which a manifest has no passes.
type Pause struct {
	// Name says why; it is shown in the tree as the name of a job.
	Name string
	// Until is its end.
	Until time.Time
}

// Hooks are what the engine is used for. All but Reconcile may be nil.
type Hooks struct {
	// Reconcile runs one pass, in a job of the manifest's actor. The context ends at the deadline of the pass and when Cancel calls it off;
	// its cause tells which. Passes of different manifests run in parallel.
	Reconcile func(ctx context.Context, pass Pass) Result
	// Start tells whether a pass may begin, and gives a token for it. Whoever refuses calls Gained when it would not refuse any more: until
	// then the manifest is not looked at. Done follows when the pass has really ended, that of an abandoned actor included.
	Start func(key Key) (token any, ok bool)
	Done  func(key Key, token any)
	// Recall tells with which past the actor of a manifest begins: how many passes failed in a row, and when the next try is due.
	Recall func(key Key) (failures int, next time.Time)
	// Paused tells whether a manifest has to pause.
	Paused func(key Key) (Pause, bool)
	// Ended is told of every pass that ended without a fault of its actor.
	Ended func(Report)
	// Fault is told of every change of a manifest's actor that a fault brought about: it backs off, is parked, or runs again.
	Fault func(key Key, change supervision.Change)
	// Stuck is told when so many passes of a manifest hang that no further one begins until one returns, the manifest changes, or the process is
	// started anew. It must not block.
	Stuck func(key Key, passes int)
	// Log takes what concerns the whole engine. Nil keeps quiet.
	Log *slog.Logger
}

// Backoff is the wait between failed passes.
type Backoff struct {
	// Initial is the first wait, Cap the longest; each is Factor times the one before.
	Initial, Cap time.Duration
	Factor       float64
	// Jitter is by what part a wait may be longer or shorter. It is a manifest's own and always the same.
	Jitter float64
}

// Timings say when passes run.
type Timings struct {
	// Debounce is the window behind the start of a pass in which further wakes are gathered.
	Debounce time.Duration
	// Resync is how long a manifest rests without a pass when nothing changes, a fifth more or less. 0 is for ever.
	Resync time.Duration
	// Fallback is how often the manifests there are are compared with what is known of them.
	Fallback time.Duration
	// Backoff is the wait after failed passes; RetryFloor is the shortest even when changes keep coming.
	Backoff    Backoff
	RetryFloor time.Duration
	// Conflicts is how many conflicts in a row count as one failure.
	Conflicts int
	// Linger is how long the actor of a manifest with nothing to do stays. 0 is for ever.
	Linger time.Duration
}

// DefaultTimings are the product's.
var DefaultTimings = Timings{
	Debounce: 50 * time.Millisecond, Resync: 5 * time.Minute, Fallback: 30 * time.Second,
	Backoff: Backoff{Initial: time.Second, Factor: 2, Cap: time.Minute, Jitter: 0.2}, RetryFloor: time.Second,
	Conflicts: 5, Linger: time.Second,
}

// DefaultTimeout bounds a pass unless Limits say otherwise.
const DefaultTimeout = 60 * time.Second

// Limits bound what passes may take.
type Limits struct {
	// Concurrency is how many passes run at a time. 0 is no bound.
	Concurrency int
	// Timeout bounds one pass; a pass that has not ended some time later is a hang of its manifest's actor. 0 is DefaultTimeout.
	Timeout time.Duration
}

// Stats are a look at an engine.
type Stats struct {
	// Manifests are those that are known, Actors those of them that have an actor, Refused those that Start refuses.
	Manifests, Actors, Refused int
	// Running are passes that have not returned, Waiting manifests that wait for one of them to end because of the limit.
	Running, Waiting int
}
