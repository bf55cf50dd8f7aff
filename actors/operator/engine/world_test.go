package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/test/harness"
)

// errDown is what the world says while it does not answer.
var errDown = errors.New("nobody is there")

// world is a store of manifests that is a Source, and the Hooks of passes on them. It keeps the books that the tests judge by.
type world struct {
	clock supervision.Clock

	mu       sync.Mutex
	revision uint64
	changed  map[Key]uint64
	feeds    []*worldFeed
	down     bool
	// lastLost is set when the next Take has lost wakes.
	lost bool

	// handled is the newest revision that a finished pass has seen.
	handled map[Key]uint64
	// began are the times of the passes that began; running those that run, most the most at a time.
	began   map[Key][]time.Time
	running map[Key]int
	most    int
	// act is what a pass does; nil for nothing.
	act func(ctx context.Context, p Pass) Result
	// held are the manifests whose lease is ours; nil when there are no leases. starts and dones are counted.
	held          map[Key]bool
	starts, dones int
	reports       []Report
	faults        []supervision.Change
	stuck         map[Key]int
	wrong         []string
}

func newWorld(clock supervision.Clock) *world {
	return &world{clock: clock, changed: map[Key]uint64{}, handled: map[Key]uint64{}, began: map[Key][]time.Time{}, running: map[Key]int{}}
}

type worldFeed struct {
	w      *world
	notify func()
	wakes  []Wake
	closed bool
}

// Subscribe implements Source.
func (w *world) Subscribe(notify func()) Feed {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := &worldFeed{w: w, notify: notify}
	w.feeds = append(w.feeds, f)
	return f
}

// Take implements Feed.
func (f *worldFeed) Take() ([]Wake, error) {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	if f.w.lost {
		f.w.lost, f.wakes = false, nil
		return nil, ErrLost
	}
	wakes := f.wakes
	f.wakes = nil
	return wakes, nil
}

// Close implements Feed.
func (f *worldFeed) Close() {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.closed = true
	f.w.feeds = slices.DeleteFunc(f.w.feeds, func(o *worldFeed) bool { return o == f })
}

// Sync implements Source.
func (w *world) Sync(context.Context) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return 0, errDown
	}
	return w.revision, nil
}

// Has implements Source.
func (w *world) Has(key Key) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed[key] != 0
}

// Keys implements Source.
func (w *world) Keys(visit func(Key, uint64) bool) {
	w.mu.Lock()
	keys := make([]Key, 0, len(w.changed))
	for key := range w.changed {
		keys = append(keys, key)
	}
	revisions := make([]uint64, len(keys))
	slices.SortFunc(keys, Key.compare)
	for i, key := range keys {
		revisions[i] = w.changed[key]
	}
	w.mu.Unlock()
	for i, key := range keys {
		if !visit(key, revisions[i]) {
			return
		}
	}
}

// put changes a manifest, making it if need be.
func (w *world) put(key Key) { w.change(key, true, true) }

// del removes a manifest.
func (w *world) del(key Key) { w.change(key, false, true) }

// change changes a manifest, and tells the feeds or not.
func (w *world) change(key Key, exists, told bool) {
	w.mu.Lock()
	w.revision++
	if w.changed[key] = w.revision; !exists {
		delete(w.changed, key)
		delete(w.handled, key)
	}
	feeds := slices.Clone(w.feeds)
	for _, f := range feeds {
		if told {
			f.wakes = append(f.wakes, Wake{Key: key, Revision: w.revision, Mends: func() bool { return true }})
		}
	}
	w.mu.Unlock()
	for _, f := range feeds {
		if told {
			f.notify()
		}
	}
}

// loseWakes drops what the feeds hold.
func (w *world) loseWakes() {
	w.mu.Lock()
	w.lost = true
	feeds := slices.Clone(w.feeds)
	w.mu.Unlock()
	for _, f := range feeds {
		f.notify()
	}
}

func (w *world) setDown(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
}

// do sets what passes do from now on.
func (w *world) do(act func(ctx context.Context, p Pass) Result) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.act = act
}

// hold gives or takes a lease; whoever takes one calls the pass off.
func (w *world) hold(e *Engine, key Key, ours bool) {
	w.mu.Lock()
	w.held[key] = ours
	w.mu.Unlock()
	if ours {
		e.Gained(key)
		return
	}
	e.Cancel(key, errors.New("the lease is lost"))
}

// hooks are those of the world's passes, under leases if it has them.
func (w *world) hooks() Hooks {
	h := Hooks{Reconcile: w.reconcile, Ended: w.ended, Fault: w.faulted, Stuck: w.noteStuck}
	if w.held != nil {
		h.Start, h.Done = w.start, w.done
	}
	return h
}

func (w *world) noteStuck(key Key, passes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stuck == nil {
		w.stuck = map[Key]int{}
	}
	w.stuck[key] = passes
}

func (w *world) start(key Key) (any, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.held[key] || w.running[key] > 0 {
		return nil, false
	}
	w.starts++
	w.running[key]++
	return w.starts, true
}

func (w *world) done(key Key, token any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dones++
	w.running[key]--
	if token == nil {
		w.wrong = append(w.wrong, "a pass is done without a token")
	}
}

func (w *world) reconcile(ctx context.Context, p Pass) Result {
	w.mu.Lock()
	saw := w.changed[p.Key]
	w.began[p.Key] = append(w.began[p.Key], w.clock.Now())
	if w.held == nil {
		w.running[p.Key]++
	}
	if w.running[p.Key] > 1 {
		w.wrong = append(w.wrong, "two passes of "+p.Key.String())
	}
	w.most = max(w.most, len(w.running))
	act := w.act
	w.mu.Unlock()
	defer w.returned(p.Key)
	result := Result{}
	if act != nil {
		result = act(ctx, p)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if result.Outcome == Succeeded && w.changed[p.Key] != 0 {
		w.handled[p.Key] = max(w.handled[p.Key], saw)
	}
	return result
}

func (w *world) returned(key Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held == nil {
		w.running[key]--
	}
	if w.running[key] == 0 {
		delete(w.running, key)
	}
}

func (w *world) ended(r Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reports = append(w.reports, r)
}

func (w *world) faulted(_ Key, c supervision.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, c)
}

// passes is how many passes of a manifest began so far.
func (w *world) passes(key Key) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.began[key])
}

// unseen lists the manifests whose last change no pass has finished with; those that are not ours do not count.
func (w *world) unseen() (keys []Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, changed := range w.changed {
		if w.handled[key] < changed && (w.held == nil || w.held[key]) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, Key.compare)
	return keys
}

// quiet are timings under which nothing but wakes brings a pass about.
func quiet() Timings {
	t := DefaultTimings
	t.Resync, t.Fallback = 0, 0
	return t
}

// inTree puts the engine into a tree of the kit.
func inTree(k *harness.Kit, e *Engine) { k.Tree(harness.Group("root", harness.OneForOne, e.Spec())) }

// settled judges the books at the end: every change was seen, nothing runs or waits, nobody has an actor, and nothing was broken.
func (w *world) settled(k *harness.Kit, e *Engine) {
	for _, wrong := range w.wrong {
		k.Errorf("%s", wrong)
	}
	if keys := w.unseen(); len(keys) > 0 {
		k.Errorf("no pass has seen the last change of %v", keys)
	}
	s := e.Stats()
	if s.Manifests != len(w.changed) || s.Actors+s.Running+s.Waiting > 0 {
		k.Errorf("of %d manifests are left %+v", len(w.changed), s)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.starts != w.dones {
		k.Errorf("%d passes were let begin, %d ended", w.starts, w.dones)
	}
}
