package pod

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/nodeactor/nodeactor/kubelet/images"
	"github.com/nodeactor/nodeactor/kubelet/runtime"
	"github.com/nodeactor/nodeactor/supervision"
)

// Update gives the pod actor a newer version of its pod.
type Update struct{ Pod *v1.Pod }

// Removed tells the pod actor that the API has the pod no more.
type Removed struct{}

// Observed is what a relist found of one pod.
type Observed struct {
	// Record is nil when the runtime has nothing of the pod.
	Record *runtime.PodRecord
	// Began is when the look at the runtime began.
	Began time.Time
}

// Exited is the hint that a container has exited.
type Exited struct{ ID string }

// Gone tells the owner of the pods that nothing of the pod is left.
type Gone struct{ UID string }

// PullRequest asks the images child for an image; repeating it has no effect while it is served.
type PullRequest struct {
	Ref       string
	Auth      *images.Keychain
	Container string
	ReplyTo   supervision.Ref
}

// PullDone answers a PullRequest.
type PullDone struct {
	Ref, Container string
	Image          images.Image
	Took           time.Duration
	Err            error
}

// tick is the actor's own wake-up.
type tick struct{}

// again repeats the start of the actor.
type again struct{}

// refresh is the time to look at the volumes' sources again.
type refresh struct{}
