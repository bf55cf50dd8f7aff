package standin

import "time"

// Habits is how the product's child of one row lives, as far as supervision can see it.
type Habits struct {
	// Makes: it makes a thing in a job, is ready when that is done, and keeps it. Owns: the
	// thing is the store.
	Makes, Owns bool
	// Follows: a job of its runs as long as the child, and its end is an error.
	Follows bool
	// Works: it does something in a job every so often: Reads or Writes the store, or what lies
	// on the same disk.
	Works, Reads, Writes bool
	// Strict: work that failed is a fault; others try again by themselves.
	Strict bool
	// Fills is the pool beside it that it keeps filled, Look the pause between two looks at it.
	Fills string
	Look  time.Duration
	// Listens: it owns a port.
	Listens bool
}

// Paces of the stand-ins.
const (
	// makeTakes is how long it takes to make a thing.
	makeTakes = 10 * time.Millisecond
	// makeLimit and workLimit bound that and one piece of work.
	makeLimit, workLimit = 5 * time.Second, 20 * time.Second
	// workEvery is the pause between two pieces of work, retryEvery that after a failed one.
	workEvery, retryEvery = 30 * time.Second, 2 * time.Second
	// beatEvery and beatWithin are those of jobs that follow something.
	beatEvery, beatWithin = 30 * time.Second, 90 * time.Second
	// MailAfter is how long after its start a generation gets the mail that waits.
	MailAfter = 100 * time.Millisecond
)

// Of says how each row of the catalog lives. Supervisors have no habits.
var Of = map[string]Habits{
	"engine":           {Makes: true, Owns: true},
	"snapshots":        {Works: true, Reads: true},
	"maintenance":      {Works: true, Writes: true, Strict: true},
	"identity":         {Works: true, Writes: true, Strict: true},
	"server":           {Makes: true},
	"bootstrap":        {Works: true, Writes: true, Strict: true},
	"listener":         {Listens: true},
	"etcd-listener":    {Listens: true},
	"socket":           {Listens: true},
	"cache":            {Makes: true, Follows: true, Reads: true},
	"reporter":         {Works: true, Writes: true},
	"kinds":            {Works: true, Reads: true},
	"dispatcher":       {Follows: true, Fills: "manifests", Look: 10 * time.Second},
	"reconciler":       {Works: true, Writes: true},
	"events-ttl":       {Works: true, Writes: true},
	"scheduler":        {Follows: true, Works: true, Writes: true},
	"network":          {Makes: true, Works: true, Writes: true},
	"images":           {Works: true, Writes: true},
	"relist":           {Makes: true, Works: true, Reads: true},
	"pod":              {Works: true, Writes: true},
	"sync":             {Follows: true, Fills: "pods", Look: time.Second},
	"node-status":      {Works: true, Writes: true},
	"node-lease":       {Works: true, Writes: true},
	"kubelet-listener": {Listens: true},
	"health":           {Works: true},
}

// members are the IDs of what is in each pool that is kept filled.
var members = map[string][]string{
	"manifests": {"default:a", "default:b"},
	"pods":      {"pod-a", "pod-b"},
}

// Members lists who is in a pool, by the pool's ID.
func Members(pool string) []string { return members[pool] }
