package harness

import (
	"context"
	"sync"

	"github.com/nodeactor/nodeactor/supervision"
)

// jobs says what the jobs of actors do in this run.
type jobs struct {
	mu     sync.Mutex
	inline map[[2]string]bool
	hooks  []func(path string, j supervision.Job) supervision.Job
}

// RunEndless lets an Endless job of a child really run in a seeded run. It must wait for
// nothing but the clock, its context and what the kit gives. Other endless jobs are
// represented by what they do when their context has ended.
func (k *Kit) RunEndless(path, job string) {
	k.jobs.mu.Lock()
	defer k.jobs.mu.Unlock()
	if k.jobs.inline == nil {
		k.jobs.inline = map[[2]string]bool{}
	}
	k.jobs.inline[[2]string{path, job}] = true
}

// Jobs lets f replace every job that a child starts from now on, for instance by one with
// fake effects.
func (k *Kit) Jobs(f func(path string, j supervision.Job) supervision.Job) {
	k.jobs.mu.Lock()
	defer k.jobs.mu.Unlock()
	k.jobs.hooks = append(k.jobs.hooks, f)
}

// InjectJob makes the n-th job of that name, which the child at path starts from now on, end in
// a fault. A Panic or Hang is a fault of the child; an ErrorReturn comes back as JobDone.
func (k *Kit) InjectJob(path, job string, n int, kind supervision.FaultKind) *Injection {
	in := &Injection{k: k, path: path + " job " + job, n: n}
	k.injections.mu.Lock()
	k.injections.all = append(k.injections.all, in)
	k.injections.mu.Unlock()
	k.Jobs(func(at string, j supervision.Job) supervision.Job {
		if at != path || j.Name != job {
			return j
		}
		if n--; n == 0 {
			j.Run = in.job(kind)
			j.Endless = j.Endless && kind == supervision.Hang
		}
		return j
	})
	return in
}

// job is what runs in place of the job.
func (in *Injection) job(kind supervision.FaultKind) func(context.Context, func()) (any, error) {
	return func(ctx context.Context, _ func()) (any, error) {
		in.fired.Store(true)
		in.k.Note("injected into %s", in.path)
		return nil, in.fault(ctx, kind)
	}
}

func (s *jobs) runs(path, job string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inline[[2]string{path, job}]
}

func (s *jobs) start(ctx supervision.Context, j supervision.Job) supervision.Job {
	s.mu.Lock()
	hooks := s.hooks
	s.mu.Unlock()
	for _, f := range hooks {
		j = f(ctx.Path(), j)
	}
	return j
}
