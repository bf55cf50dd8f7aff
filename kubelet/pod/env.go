package pod

import (
	"context"
	"net/netip"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"github.com/nodeactor/nodeactor/kubelet/images"
	"github.com/nodeactor/nodeactor/kubelet/objects"
	"github.com/nodeactor/nodeactor/kubelet/podspec"
	"github.com/nodeactor/nodeactor/kubelet/runtime"
	"github.com/nodeactor/nodeactor/kubelet/volumes"
	"github.com/nodeactor/nodeactor/supervision"
)

// Deadlines of the actor's jobs, and its own periods. A job that exceeds its deadline is cancelled; the machine then
// asks for it again.
const (
	adoptDeadline    = 30 * time.Second
	mountDeadline    = 2 * time.Minute
	sandboxDeadline  = time.Minute
	startDeadline    = 2 * time.Minute
	stopMargin       = 10 * time.Second
	killDeadline     = time.Minute
	removeDeadline   = time.Minute
	hookDeadline     = 10 * time.Minute
	probeMargin      = 5 * time.Second
	inspectDeadline  = 10 * time.Second
	teardownDeadline = 2 * time.Minute
	apiDeadline      = 15 * time.Second
	secretsDeadline  = 15 * time.Second
	// refreshEvery is how often config maps, secrets and tokens are looked at.
	refreshEvery = time.Minute
	// pullRepeat is how often a pull that has not been answered is asked for again.
	pullRepeat = time.Minute
	// statusRetryFirst and statusRetryMax space the writes of a status the API does not take.
	statusRetryFirst = time.Second
	statusRetryMax   = 20 * time.Second
	// statusPatience is how long a change of status that nobody waits for may wait for the next one.
	statusPatience = 200 * time.Millisecond
	// maxQueuedEvents bounds what waits for an unreachable API; the oldest is dropped.
	maxQueuedEvents = 100
)

// LedgerBucket is where the assigned pods are kept, by UID.
const LedgerBucket = "kubelet-pods"

// Network is what a pod actor needs of the node's network.
type Network interface {
	Attach(ctx context.Context, podUID, path string) ([]netip.Addr, error)
	Detach(ctx context.Context, podUID string) error
}

// ImageLookup finds images that are present.
type ImageLookup interface {
	Lookup(ref string) (images.Image, bool)
}

// Ledger keeps the assigned pods.
type Ledger interface {
	Put(bucket, key string, v any) error
	Delete(bucket, key string) error
}

// Env is what all pod actors of a node share.
type Env struct {
	NodeName string
	Client   kubernetes.Interface
	Runtime  runtime.Runtime
	Images   ImageLookup
	Network  Network
	Volumes  *volumes.Manager
	Objects  objects.Source
	Ledger   Ledger
	Table    *Table
	// Host is what pods learn about the node. Services are those of the cluster; false when not known yet.
	Host     func() podspec.Host
	Services func() ([]podspec.Service, bool)
	// Events folds repeated Events into one.
	Events *record.EventCorrelator
	// Puller serves PullRequests, Owner is told Gone.
	Puller, Owner func() supervision.Ref

	// eventSeq keeps the names of Events of one moment apart.
	eventSeq atomic.Int64
}

const (
	// jobMargin is what a job gets after its own deadline to hand back its result.
	jobMargin = 10 * time.Second
	// retryAdopt is the wait before looking again for what is left of a pod.
	retryAdopt = 2 * time.Second
	// unknownExitCode is the code of a run whose end nobody saw.
	unknownExitCode = 137
)

const (
	// podDirMode keeps secrets and logs of pods from other users of the host.
	podDirMode = 0o755
	// startErrorExitCode is the exit code of a run whose command could not be executed.
	startErrorExitCode = 128
	// maxHookOutput bounds what of a hook's or probe's output goes into an Event.
	maxHookOutput = 10 << 10
)
