package runtime

import (
	"context"
	"syscall"
	"time"
)

// Runtime is what the kubelet needs to run pods. [Engine] is the implementation.
//
// All calls are safe for concurrent use. A call that returns an error from its context may have had its effect; calling
// it again is safe, because each is idempotent or refuses with [ErrExists].
type Runtime interface {
	// CreateSandbox makes what a pod's containers share. It is idempotent: for an existing sandbox it returns that one.
	CreateSandbox(ctx context.Context, spec SandboxSpec) (Sandbox, error)
	// RemoveSandbox removes everything of a pod: processes, containers, namespaces, cgroups, directories. nil when there is
	// nothing. The error matches [ErrUnkillable] when processes do not die; call it again later.
	RemoveSandbox(ctx context.Context, podUID string) error
	// StartContainer creates and starts a container in an existing sandbox. It returns once the process image is the user's
	// own, so that signals reach it. The error is a [*StartError]; then nothing is left of the attempt.
	// [ErrExists] when the id is known, [ErrNotFound] when the sandbox is not.
	StartContainer(ctx context.Context, spec ContainerSpec) (Container, error)
	// Signal sends sig to the main process. [ErrNotRunning] when it has exited.
	Signal(ctx context.Context, id string, sig syscall.Signal) error
	// Kill thaws and kills every process of the container and waits for their end; nil when it has exited.
	Kill(ctx context.Context, id string) error
	// RemoveContainer kills it if need be and removes all of it but its log; nil when it is unknown.
	RemoveContainer(ctx context.Context, id string) error
	// Exec runs one more process and waits for it. The code is 128+n when signal n killed it. When ctx ends, the process is
	// killed. The error is a [*StartError] when the command could not be started.
	Exec(ctx context.Context, id string, spec ExecSpec) (exitCode int, err error)
	// Attach connects the streams until the container exits, the client's input and output end, or ctx does.
	Attach(ctx context.Context, id string, spec AttachSpec) error
	// ReopenLog makes the container's shim open its log path anew, after a rotation renamed the file.
	ReopenLog(ctx context.Context, id string) error
	// List returns every sandbox with its containers as they are now, looked up at the processes themselves, not remembered.
	// The result belongs to the caller.
	List(ctx context.Context) ([]PodRecord, error)
	// Container returns one record as List would.
	Container(ctx context.Context, id string) (Container, error)
	// Events delivers one value per container exit. The channel is never closed; it is bounded, and what does not fit is
	// dropped: List has it.
	Events() <-chan Event
	// Stats reads the counters of a running container's cgroup.
	Stats(ctx context.Context, id string) (Stats, error)
	// PodStats reads the counters of a pod's cgroup.
	PodStats(ctx context.Context, podUID string) (Stats, error)
	// CgroupVersion is 1 or 2.
	CgroupVersion() int
}

// State is where a container is in its life.
type State string

// The states. A failed start leaves no container, so there is none for it.
const (
	// Running: the main process lives.
	Running State = "running"
	// Exited: it ended; the exit fields are filled.
	Exited State = "exited"
)

// Reasons of an exit, as Kubernetes writes them in a terminated state.
const (
	ReasonCompleted = "Completed"
	ReasonError     = "Error"
	ReasonOOMKilled = "OOMKilled"
	// ReasonUnknown: nobody saw the end (the host was restarted, or the shim was killed); the code is 137.
	ReasonUnknown = "ContainerStatusUnknown"
)

// Container is one container as it is now.
type Container struct {
	ID, PodUID, Name string
	Attempt          int
	Labels           map[string]string
	State            State
	// PID is the main process on the host while Running.
	PID                              int
	CreatedAt, StartedAt, FinishedAt time.Time
	// ExitCode is 128+Signal when a signal ended it.
	ExitCode int
	Signal   int
	Reason   string
	Message  string
	LogPath  string
	Tty      bool
	Stdin    bool
	// NetNS and CgroupPath are those of the container's pod and of its own cgroup.
	CgroupPath string
}

// PodRecord is one sandbox and its containers, ordered by CreatedAt.
type PodRecord struct {
	Spec    SandboxSpec
	Sandbox Sandbox
	// Ready is false when the sandbox itself is broken (its namespaces are gone, as after a restart of the host, or its
	// pause process died): remove it and make a new one.
	Ready      bool
	Containers []Container
}

// Event says that a container has exited; Container has the details.
type Event struct {
	PodUID, ID string
}

// Stats are counters of one cgroup at Time.
type Stats struct {
	Time time.Time
	// CPUNanos is CPU time used so far.
	CPUNanos uint64
	// MemoryBytes is everything charged, WorkingSetBytes without inactive file cache, RSSBytes anonymous memory.
	MemoryBytes, WorkingSetBytes, RSSBytes uint64
	// MemoryLimit is 0 when there is none.
	MemoryLimit uint64
	Pids        uint64
	// PageFaults and MajorPageFaults so far.
	PageFaults, MajorPageFaults uint64
	// OOMKills counts processes of this group killed for lack of memory.
	OOMKills uint64
}
