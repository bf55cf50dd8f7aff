package wire

import "time"

// QOS is the Kubernetes quality-of-service class of a pod; it decides where its cgroup hangs.
type QOS string

// The classes. Guaranteed pods hang directly under the cgroup root, the others under a group of their class.
const (
	Guaranteed QOS = "Guaranteed"
	Burstable  QOS = "Burstable"
	BestEffort QOS = "BestEffort"
)

// SandboxSpec says what the containers of one pod share.
type SandboxSpec struct {
	PodUID, Namespace, Name string
	// Hostname is set in the pod's own UTS namespace and given to containers as HOSTNAME; ignored with HostNetwork,
	// where the host's name holds.
	Hostname string
	// HostNetwork, HostPID and HostIPC leave the pod in the host's namespace of that kind.
	HostNetwork, HostPID, HostIPC bool
	// ShareProcessNamespace gives the pod one process namespace, whose pid 1 is a pause process that reaps.
	ShareProcessNamespace bool
	// Sysctls are namespaced kernel parameters, dotted names. Those of net.* need the pod's own network.
	Sysctls map[string]string
	// QOS is where the pod's cgroup hangs; empty means BestEffort.
	QOS QOS
	// Resources limit the pod as a whole. OOMScoreAdj is ignored here.
	Resources Resources
	// Labels are kept with the record and returned by List, for the caller's own use.
	Labels map[string]string
}

// Sandbox is what creating a sandbox made.
type Sandbox struct {
	PodUID string
	// NetNS is the path of the pinned network namespace, empty with HostNetwork.
	NetNS string
	// CgroupPath is the pod's cgroup, absolute under each hierarchy.
	CgroupPath string
	// CreatedAt is when it was recorded.
	CreatedAt time.Time
}

// ContainerSpec says what to run. It is complete: nothing is looked up in an image here.
type ContainerSpec struct {
	// ID is unique per attempt and a valid file name of at most 64 bytes, for instance "<uid>-<name>-<attempt>" hashed.
	ID, PodUID, Name string
	// Attempt counts the restarts of this container name, from 0.
	Attempt int
	Rootfs  RootfsSpec
	// Args is the full command line; Args[0] is looked up in the PATH of Env inside the root file system.
	Args []string
	// Env is "NAME=value". PATH, HOSTNAME and (with Tty) TERM are added when missing.
	Env []string
	// Cwd is "/" when empty, and is created when missing.
	Cwd      string
	UID, GID int
	Groups   []int
	// CapAdd and CapDrop change the default set; names with or without CAP_, "ALL" allowed.
	CapAdd, CapDrop []string
	// Privileged gives every capability and device this host has, and unmasked /proc and writable /sys.
	Privileged       bool
	ReadOnlyRootfs   bool
	NoNewPrivs       bool
	Mounts           []Mount
	Resources        Resources
	Devices          []Device
	Rlimits          []Rlimit
	UnmaskProc       bool
	Seccomp          string // "", "Unconfined", "RuntimeDefault"
	LogPath          string // CRI format; parent directories are created
	Tty              bool
	Stdin            bool // keep a pipe to the process open for Attach; otherwise it reads /dev/null
	StdinOnce        bool // close that pipe when the first attached client goes
	StopSignal       int  // informational, kept with the record
	Labels           map[string]string
	TerminationGrace time.Duration // informational, kept with the record
}

// RootfsSpec is the container's root: an overlay of read-only layers with a writable layer of its own on top.
type RootfsSpec struct {
	// Layers are unpacked directories, topmost first; at least one.
	Layers []string
}

// Propagation says which way later mounts below a bind mount travel.
type Propagation string

// The Kubernetes mountPropagation values; empty means None.
const (
	PropagationNone            Propagation = "None"
	PropagationHostToContainer Propagation = "HostToContainer"
	PropagationBidirectional   Propagation = "Bidirectional"
)

// Mount is one more mount inside the container.
type Mount struct {
	// Type is "bind" (also when empty) or "tmpfs".
	Type string
	// Source is a host path for bind: directory, file or socket; it must exist.
	Source string
	// Destination is an absolute path inside; the mount point is created.
	Destination string
	ReadOnly    bool
	// RecursiveReadOnly makes submounts read-only too.
	RecursiveReadOnly bool
	Propagation       Propagation
	// Size bounds a tmpfs in bytes, 0 = half of the memory.
	Size int64
}

// Device is one device node of the host given to the container.
type Device struct {
	HostPath, ContainerPath string
	// Permissions is a subset of "rwm".
	Permissions string
}

// Rlimit is one resource limit; values above what this process may set are clamped.
type Rlimit struct {
	// Type is the name as in setrlimit(2), for instance "RLIMIT_NOFILE".
	Type       string
	Soft, Hard uint64
}

// Resources are cgroup limits; a zero field sets nothing.
type Resources struct {
	CPUShares uint64 // weight, 2..262144; converted on cgroup v2
	CPUQuota  int64  // microseconds of CPU time in each CPUPeriod
	CPUPeriod uint64 // microseconds
	// MemoryBytes is the hard limit. The smallest that lets a container start is about 4 MiB.
	MemoryBytes int64
	PidsLimit   int64
	CPUSet      string
	// OOMScoreAdj is clamped to what this process may set.
	OOMScoreAdj int
}

// TermSize is a terminal's size in characters.
type TermSize struct{ Width, Height uint16 }
