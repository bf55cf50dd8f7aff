package scheduler

import "time"

const (
	// defaultName is the schedulerName of the pods that are this scheduler's.
	defaultName = "default-scheduler"

	// bindParallel is how many bindings are stored at once: enough to fill the store's group commit.
	bindParallel = 32
	// reportParallel is how many conditions of unschedulable pods are written at once.
	reportParallel = 4
	// evictParallel is how many victims are evicted at once.
	evictParallel = 4
	// eventParallel is how many Events are written at once; they are the least urgent writes.
	eventParallel = 2
	// eventBacklogLimit is how many Events may wait; more are dropped, for Events are best effort.
	eventBacklogLimit = 10_000
	// eventQuiet is how long no pod has been bound when Events are written: what makes pods has its turn first.
	eventQuiet = 300 * time.Millisecond
	// eventLinger is how long Events give way before they are written beside bindings.
	eventLinger = 3 * time.Second

	// writeTimeout bounds one write.
	writeTimeout = 10 * time.Second
	// laneSilence is the longest time a healthy lane job goes without finishing a task.
	laneSilence = 2 * writeTimeout

	// turnBudget ends a batch, so that changes are taken in between.
	turnBudget = 20 * time.Millisecond
	// turnPods is the most pods placed in one turn, so that their bindings start early.
	turnPods = 128

	// backoffFirst and backoffLast bound how soon a pod is tried again; the wait doubles with each try.
	backoffFirst = time.Second
	backoffLast  = 10 * time.Second
	// reviewEvery is how often readiness is judged anew while pods wait or nodes are not ready.
	reviewEvery = time.Second
	// reviewFresh is how old a judgement of readiness may be when pods are placed.
	reviewFresh = 500 * time.Millisecond
	// flushAfter is how long a pod waits for a helpful change before it is tried without one.
	flushAfter = 60 * time.Second
)
