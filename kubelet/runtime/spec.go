package runtime

import (
	"io"

	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
)

// The specifications travel to the helper process as they are; see package wire for their fields.
type (
	QOS           = wire.QOS
	SandboxSpec   = wire.SandboxSpec
	Sandbox       = wire.Sandbox
	ContainerSpec = wire.ContainerSpec
	RootfsSpec    = wire.RootfsSpec
	Propagation   = wire.Propagation
	Mount         = wire.Mount
	Device        = wire.Device
	Rlimit        = wire.Rlimit
	Resources     = wire.Resources
	TermSize      = wire.TermSize
)

// Values of the closed lists, see package wire.
const (
	Guaranteed                 = wire.Guaranteed
	Burstable                  = wire.Burstable
	BestEffort                 = wire.BestEffort
	PropagationNone            = wire.PropagationNone
	PropagationHostToContainer = wire.PropagationHostToContainer
	PropagationBidirectional   = wire.PropagationBidirectional
)

// ExecSpec is one more process in a running container.
type ExecSpec struct {
	Args []string
	Env  []string // added to the container's own
	Cwd  string   // the container's when empty
	// UID, GID and Groups are used when User is true; otherwise the container's own.
	User     bool
	UID, GID int
	Groups   []int
	Tty      bool
	// Stdin may be nil (/dev/null). The reader is read until it ends or the process does; it is not closed here.
	Stdin io.Reader
	// Stdout and Stderr may be nil (discarded). With Tty everything comes on Stdout. *os.File is handed to the process
	// directly, anything else is copied.
	Stdout, Stderr io.Writer
	// Resize is read until closed; only used with Tty. The first value should be there before the call.
	Resize <-chan TermSize
}

// AttachSpec connects to a container's main process.
type AttachSpec struct {
	// Stdin is used if the container has Stdin; nil attaches for output only.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Resize         <-chan TermSize
}
