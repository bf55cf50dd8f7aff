package scheduler

import (
	"context"
	"sync"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

// task is one write; what it returns reaches the actor, nil reaches nobody.
type task func(ctx context.Context) any

// lane works off tasks of one kind by at most parallel jobs, which end when there is nothing left.
type lane struct {
	name     string
	parallel int
	deliver  func(any)

	mu      sync.Mutex
	tasks   []task
	running int
	// since is when the lane last had nothing waiting.
	since time.Time
}

// add puts a task at the end; start is what gets it done.
func (l *lane) add(t task, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.tasks) == 0 {
		l.since = now
	}
	l.tasks = append(l.tasks, t)
}

// waiting is how many tasks no job has taken, and since when there have been any.
func (l *lane) waiting() (int, time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.tasks), l.since
}

// start begins as many jobs as the waiting tasks are worth.
func (l *lane) start(ctx supervision.Context) {
	l.mu.Lock()
	more := min(len(l.tasks), l.parallel-l.running)
	l.running += max(more, 0)
	l.mu.Unlock()
	for range more {
		ctx.Go(supervision.Job{Name: l.name, BeatWithin: laneSilence, Run: func(ctx context.Context, beat func()) (any, error) {
			l.work(ctx, beat)
			return nil, nil
		}})
	}
}

// work does tasks until none is left. The context ends with the generation the tasks belong to, so a replaced one writes nothing more.
func (l *lane) work(ctx context.Context, beat func()) {
	for {
		t := l.take()
		if t == nil || ctx.Err() != nil {
			return
		}
		bounded, cancel := context.WithTimeout(ctx, writeTimeout)
		result := t(bounded)
		cancel()
		beat()
		if result != nil {
			l.deliver(result)
		}
	}
}

// take gives the next task; with none left it counts the job as ended.
func (l *lane) take() task {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.tasks) == 0 {
		l.running--
		return nil
	}
	t := l.tasks[0]
	l.tasks[0] = nil
	l.tasks = l.tasks[1:]
	return t
}
