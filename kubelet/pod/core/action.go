package core

import "time"

// Kind names what an [Action] asks for. The list grows at the end.
type Kind int

// The kinds. Each is answered by the fact named behind it.
const (
	// MountVolumes prepares all volumes: VolumesMounted.
	MountVolumes Kind = iota
	// CreateSandbox makes the sandbox and its network: SandboxCreated.
	CreateSandbox
	// ResetSandbox removes a broken sandbox with all its containers: SandboxReset.
	ResetSandbox
	// EnsureImage makes the image of Container present as its pull policy wants: ImageEnsured.
	EnsureImage
	// StartContainer starts run Attempt of Container: ContainerStarted or ContainerStartFailed.
	StartContainer
	// PostStart runs the postStart hook of Container: PostStartDone.
	PostStart
	// StopContainer runs the preStop hook and sends the stop signal; Grace bounds both: StopSent.
	StopContainer
	// KillContainer kills every process of the run ID: KillDone.
	KillContainer
	// RemoveContainer forgets the old run ID and its log; nothing answers.
	RemoveContainer
	// Probe runs one probe of Container: ProbeDone.
	Probe
	// Teardown removes sandbox, network and volumes: TornDown.
	Teardown
	// Finalize deletes the pod from the API and the node's records: Finalized.
	Finalize
	// Record records the Event of the fields Type, Reason and Message; nothing answers.
	Record
)

var kindNames = [...]string{"MountVolumes", "CreateSandbox", "ResetSandbox", "EnsureImage", "StartContainer", "PostStart",
	"StopContainer", "KillContainer", "RemoveContainer", "Probe", "Teardown", "Finalize", "Record"}

// String is the name of the constant.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return "unknown"
	}
	return kindNames[k]
}

// ProbeKind names one of a container's three probes.
type ProbeKind int

// The probes.
const (
	Startup ProbeKind = iota
	Readiness
	Liveness
	numProbes
)

// String is the name Events use.
func (k ProbeKind) String() string { return [...]string{"Startup", "Readiness", "Liveness"}[k] }

// Action is one thing to do. Fields not named in the comment of its Kind are zero.
type Action struct {
	Kind      Kind
	Container string
	ID        string
	Attempt   int
	Grace     time.Duration
	Probe     ProbeKind
	// Type ("Normal" or "Warning"), Reason and Message are those of an Event.
	Type, Reason, Message string
}
