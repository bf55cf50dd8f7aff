// Package wire is what the daemon and its helper process say to each other: one JSON request, JSON lines in reply.
//
// It imports neither libcontainer nor anything of the daemon, so that both sides can link it.
package wire

import "path/filepath"

// Operations, given as the helper's only argument.
const (
	OpSandbox       = "sandbox"        // SandboxRequest: make one
	OpStart         = "start"          // StartRequest: create and start a container, then become its shim
	OpExec          = "exec"           // ExecRequest: run one more process, then wait for it
	OpKill          = "kill"           // KillRequest: kill a whole cgroup
	OpRemove        = "remove"         // RemoveRequest: remove containers
	OpRemoveSandbox = "remove-sandbox" // RemoveRequest: remove containers and their sandbox
	OpSweep         = "sweep"          // SweepRequest: remove what nobody knows
)

// File descriptors of a helper besides the standard three.
const (
	FDRequest = 3 // the request, a memory file
	FDReply   = 4 // a pipe for the reply
	FDAlive   = 5 // held open as long as the helper works; see Layout.Helpers
	FDConsole = 6 // only exec with a terminal: the socket on which its master comes
)

// Classes of a failed start.
const (
	ClassCreate = "create" // the spec cannot be carried out
	ClassRun    = "run"    // the command cannot be executed
)

// SandboxRequest asks for a sandbox.
type SandboxRequest struct {
	Layout Layout
	Spec   SandboxSpec
	Cgroup string
}

// StartRequest asks for a running container.
type StartRequest struct {
	Layout  Layout
	Sandbox SandboxSpec
	Spec    ContainerSpec
	Cgroup  string
	// Pause makes this the sandbox's pause container: no layers, the command is the helper binary itself.
	Pause bool
	// PausePID is the process whose process namespace is joined, 0 for none.
	PausePID int
}

// ExecRequest asks for one more process in a container; everything is resolved.
type ExecRequest struct {
	Layout        Layout
	ID            string
	Args, Env     []string
	Cwd           string
	UID, GID      int
	Groups        []int
	Tty           bool
	Width, Height uint16
}

// KillRequest asks for the end of every process below a cgroup.
type KillRequest struct {
	Cgroup string
	WaitMS int
}

// RemoveRequest asks for the removal of containers, and with OpRemoveSandbox of the sandbox PodUID too.
type RemoveRequest struct {
	Layout Layout
	PodUID string
	// Cgroup is the pod's for OpRemoveSandbox, else unused.
	Cgroup     string
	Containers []Removal
	WaitMS     int
}

// Removal is one container to remove.
type Removal struct{ ID, Cgroup string }

// SweepRequest names what is known; everything else below the run directory and the cgroup root goes.
type SweepRequest struct {
	Layout     Layout
	CgroupRoot string
	Pods       map[string]string // uid to cgroup
	Containers map[string]string // id to cgroup
	WaitMS     int
}

// Reply is one line from the helper.
type Reply struct {
	// Error is empty on success.
	Error string `json:"error,omitempty"`
	// Class is set with Error for OpStart and OpExec.
	Class string `json:"class,omitempty"`
	// PID is the started process.
	PID int `json:"pid,omitempty"`
	// Survivors are processes that did not die.
	Survivors []int `json:"survivors,omitempty"`
	// Exited and Status are the last line of OpExec.
	Exited bool `json:"exited,omitempty"`
	Status int  `json:"status,omitempty"`
	// Notes are things the daemon should log.
	Notes []string `json:"notes,omitempty"`
}

// Started is the file a shim writes when its container runs.
type Started struct {
	PID int `json:"pid"`
	// StartTicks is the process's start time as in /proc/PID/stat; with BootID it tells a reused pid.
	StartTicks uint64 `json:"startTicks"`
	BootID     string `json:"bootID"`
	TimeNanos  int64  `json:"timeNanos"`
}

// Exit is the file a shim writes when its container has ended.
type Exit struct {
	PID       int   `json:"pid"`
	Status    int   `json:"status"` // as wait(2) gives it
	TimeNanos int64 `json:"timeNanos"`
	OOMKills  int64 `json:"oomKills"`
}

// Layout is the run directory.
type Layout struct{ Run string }

// Containers is the parent of the container directories.
func (l Layout) Containers() string { return filepath.Join(l.Run, "containers") }

// Container is the directory of one container.
func (l Layout) Container(id string) string { return filepath.Join(l.Run, "containers", id) }

// Lock is held by the container's shim, as a record lock so that its holder can be asked for.
func (l Layout) Lock(id string) string { return filepath.Join(l.Container(id), "lock") }

// Started is there once the container runs.
func (l Layout) Started(id string) string { return filepath.Join(l.Container(id), "started.json") }

// Exit is there once it has ended.
func (l Layout) Exit(id string) string { return filepath.Join(l.Container(id), "exit.json") }

// AttachSocket is where the shim listens.
func (l Layout) AttachSocket(id string) string { return filepath.Join(l.Container(id), AttachName) }

// AttachName is the socket's name within the container directory.
const AttachName = "attach.sock"

// Rootfs is the mounted root of a container.
func (l Layout) Rootfs(id string) string { return filepath.Join(l.Container(id), "rootfs") }

// State is libcontainer's directory.
func (l Layout) State() string { return filepath.Join(l.Run, "state") }

// Sandboxes is the parent of the sandbox directories.
func (l Layout) Sandboxes() string { return filepath.Join(l.Run, "sandboxes") }

// Sandbox is the directory of one sandbox.
func (l Layout) Sandbox(uid string) string { return filepath.Join(l.Run, "sandboxes", uid) }

// Namespace is where a namespace of the sandbox is pinned; kind is net, uts or ipc.
func (l Layout) Namespace(uid, kind string) string { return filepath.Join(l.Sandbox(uid), "ns", kind) }

// Shm is the sandbox's /dev/shm.
func (l Layout) Shm(uid string) string { return filepath.Join(l.Sandbox(uid), "shm") }

// Ready is there once the sandbox is complete; it holds the boot in which that was so.
func (l Layout) Ready(uid string) string { return filepath.Join(l.Sandbox(uid), "ready") }

// Helpers is locked, shared, by every helper that works here: who gets it exclusively knows that none does.
func (l Layout) Helpers() string { return filepath.Join(l.Run, "helpers.lock") }

// CgroupLock guards the parents of pod cgroups: shared to make a child of theirs, exclusive to remove them.
func (l Layout) CgroupLock() string { return filepath.Join(l.Run, "cgroup.lock") }

// Engine is locked by the daemon.
func (l Layout) Engine() string { return filepath.Join(l.Run, "engine.lock") }
