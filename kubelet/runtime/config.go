package runtime

import (
	"log/slog"
	"time"
)

// Config is what [Open] needs.
type Config struct {
	// Dir is the run directory, 0700, owned by one Engine at a time. It must not contain the helper binary nor lie below
	// the binary's directory: libcontainer would then copy the whole binary at each start.
	Dir string
	// HelperPath is the nodeactor-runtime binary.
	HelperPath string
	// CgroupRoot is the parent of all cgroups made here, absolute; "/nodeactor" when empty.
	CgroupRoot string
	// Ledger remembers every act before it happens.
	Ledger Ledger
	// Clock tells when something was created; supervision's clocks do.
	Clock Clock
	// Log gets one line per unusual thing.
	Log *slog.Logger
	// StartDeadline bounds the start of a sandbox, container or exec; 0 means startDeadline.
	StartDeadline time.Duration
}

// Clock is the part of supervision.Clock used here.
type Clock interface{ Now() time.Time }

// Ledger is the part of the node's ledger used here; *ledger.Ledger has it. Values travel as JSON. Each call of Put is on
// disk when it returns.
type Ledger interface {
	Put(bucket, key string, v any) error
	Get(bucket, key string, v any) (bool, error)
	Delete(bucket, key string) error
	Each(bucket string, visit func(key string, raw []byte) error) error
}

const (
	defaultCgroupRoot = "/nodeactor"

	// startDeadline is about a hundred times what a start takes on a busy host.
	startDeadline = 30 * time.Second
	// killWait is how long killed processes may take to die before they count as unkillable.
	killWait = 10 * time.Second
	// removeDeadline leaves a removal its killWait and the unmounts after it.
	removeDeadline = 30 * time.Second
	// sweepDeadline bounds the removal of everything unknown at start.
	sweepDeadline = 2 * time.Minute
	// reapWait is how long a helper that has answered may take to end before the poller takes over.
	reapWait = time.Second
	// drainQuiet is how long the output of an ended exec must be silent, while something still holds it, to be complete.
	drainQuiet = 200 * time.Millisecond
	// logReopenDeadline bounds a shim's answer to ReopenLog.
	logReopenDeadline = 5 * time.Second

	// pollBeat is the longest Poll sleeps, so that its supervisor sees it alive.
	pollBeat = 5 * time.Second
	// heavyHelpers is how many helpers may make or remove things at one time. More would only be slower, each, until they
	// exceed their deadlines; fewer would let a handful of stuck ones hold up the healthy.
	heavyHelpers = 16
	// eventBacklog is how many exits are kept for a reader that is late.
	eventBacklog = 1024
	// maxNameBytes bounds ids and uids, which are file names.
	maxNameBytes = 64
	// copyBytes is the unit in which streams are copied; it fits one packet of the shim.
	copyBytes = 16384

	bucketSandboxes  = "runtime.sandboxes"
	bucketContainers = "runtime.containers"
)
