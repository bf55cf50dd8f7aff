package supervisionapi

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Actor is one child of the supervision tree.
type Actor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty" doc:"Standard object's metadata. The name is the actor's path with every / replaced by a colon."`

	Spec   ActorSpec   `json:"spec" doc:"What was declared about the actor."`
	Status ActorStatus `json:"status" doc:"What the actor is doing at this moment."`
}

// ActorSpec is what was declared about an actor.
type ActorSpec struct {
	Path        string    `json:"path" doc:"Place in the tree, as in logs, metrics and nodeactor restart PATH."`
	Row         string    `json:"row,omitempty" doc:"Row of the catalog that the actor was declared by."`
	Kind        ActorKind `json:"kind" doc:"Whether the actor works or looks after others."`
	Supervisor  string    `json:"supervisor,omitempty" doc:"Name of the actor above this one; empty for the root."`
	FaultPolicy string    `json:"faultPolicy,omitempty" doc:"Name of the FaultPolicy that says what happens to this actor on each fault."`
}

// ActorKind tells workers from supervisors.
type ActorKind string

// The kinds of actor.
const (
	Worker     ActorKind = "Worker"
	Supervisor ActorKind = "Supervisor"
)

// ActorState is where an actor is in its life.
type ActorState string

// The states of an actor.
const (
	Idle       ActorState = "Idle"
	Starting   ActorState = "Starting"
	Running    ActorState = "Running"
	Stopping   ActorState = "Stopping"
	BackingOff ActorState = "BackingOff"
	Parked     ActorState = "Parked"
	Dead       ActorState = "Dead"
	Done       ActorState = "Done"
)

// The types of an actor's conditions.
const (
	// ConditionReady is true while the actor is running and not stalled.
	ConditionReady = "Ready"
	// ConditionParked is true while the actor waits at the cap of its back-off because its budget is spent.
	ConditionParked = "Parked"
	// ConditionAbandoned is true while a generation that would not stop still runs.
	ConditionAbandoned = "Abandoned"
)

// ReasonCrashLoop is the reason of a true Parked condition.
const ReasonCrashLoop = "CrashLoopBackOff"

// ActorStatus is what can be seen of an actor at one moment.
type ActorStatus struct {
	State       ActorState         `json:"state" doc:"Where the actor is in its life. BackingOff waits for the next start; Parked has spent its budget and is tried again at the cap of its back-off; Dead stays down by policy; Done came to its normal end."`
	Since       *metav1.Time       `json:"since,omitempty" doc:"When the state was entered."`
	Generation  int64              `json:"generation" doc:"Number of the present life; it grows with each start and is never used twice."`
	Restarts    int32              `json:"restarts" doc:"How often the actor was started again."`
	NextTry     *metav1.Time       `json:"nextTry,omitempty" doc:"When an actor that is backing off or parked is started again."`
	Hung        bool               `json:"hung,omitempty" doc:"Whether a message, job or start has been silent for longer than it may."`
	Zombies     int32              `json:"zombies" doc:"How many abandoned generations still run. They are fenced: nothing they do takes effect."`
	Mailbox     MailboxStatus      `json:"mailbox" doc:"What waits for the actor and what it has handled."`
	Busy        *BusyStatus        `json:"busy,omitempty" doc:"The message that is being handled."`
	Jobs        []string           `json:"jobs,omitempty" doc:"Names of the jobs that run beside the messages."`
	LastBeat    *metav1.Time       `json:"lastBeat,omitempty" doc:"Latest sign of life of a job."`
	CPU         string             `json:"cpu,omitempty" doc:"Share of one core when it was last measured, as a quantity; absent when nobody measured."`
	CPUMeasured *metav1.Time       `json:"cpuMeasured,omitempty" doc:"When that was."`
	LastFault   *FaultStatus       `json:"lastFault,omitempty" doc:"What went wrong last."`
	Conditions  []metav1.Condition `json:"conditions,omitempty" doc:"Ready, Parked (reason CrashLoopBackOff) and Abandoned."`
}

// MailboxStatus is the state of an actor's queue.
type MailboxStatus struct {
	Depth   int32            `json:"depth" doc:"Messages that wait."`
	Oldest  *metav1.Duration `json:"oldest,omitempty" doc:"How long the oldest of them has waited."`
	Handled int64            `json:"handled" doc:"Messages that the present generation has handled."`
}

// BusyStatus tells of a message that is being handled.
type BusyStatus struct {
	With string          `json:"with" doc:"Type of the message."`
	For  metav1.Duration `json:"for" doc:"How long it has been handled so far."`
}

// FaultStatus is one fault of one generation.
type FaultStatus struct {
	Kind       string      `json:"kind" doc:"Panic, Hang, ErrorReturn or BindFailure."`
	At         metav1.Time `json:"at" doc:"When the fault was seen."`
	Generation int64       `json:"generation" doc:"Generation that failed."`
	In         string      `json:"in,omitempty" doc:"Type of the message that was being handled, or the job's name."`
	Message    string      `json:"message,omitempty" doc:"What the fault says."`
	StackHash  string      `json:"stackHash,omitempty" doc:"Short name of the cause: faults with equal hashes come from the same place. The stack itself is in the log."`
}

// ActorList is a list of actors, in the order of their paths.
type ActorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty" doc:"Standard list metadata."`

	Items []Actor `json:"items" doc:"The actors."`
}
