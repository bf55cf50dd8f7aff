package supervisionapi

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FaultPolicy says what happens to one child of the supervision tree, or to every member of one pool, on each kind of fault.
type FaultPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty" doc:"Standard object's metadata. The name is the actor's path with every / replaced by a colon; that of the members of a pool ends with :*."`

	Spec   FaultPolicySpec   `json:"spec" doc:"The policy in force."`
	Status FaultPolicyStatus `json:"status" doc:"Where the policy comes from."`
}

// FaultPolicySpec is the policy in force.
type FaultPolicySpec struct {
	Path         string          `json:"path" doc:"Path of the actor, the members of a pool are POOL/*."`
	Row          string          `json:"row,omitempty" doc:"Row of the catalog."`
	Kind         ActorKind       `json:"kind" doc:"Whether the actor works or looks after others."`
	Restart      string          `json:"restart" doc:"Permanent actors are always started again, transient ones only after a fault, temporary ones never."`
	Significant  bool            `json:"significant,omitempty" doc:"Whether the end of the actor ends its supervisor."`
	StartTimeout metav1.Duration `json:"startTimeout" doc:"How long a start may take before it counts as a hang."`
	HangAfter    metav1.Duration `json:"hangAfter" doc:"How long one message may be handled before it counts as a hang."`
	StopTimeout  metav1.Duration `json:"stopTimeout" doc:"How long a stop may take before the generation is abandoned."`
	Mailbox      MailboxPolicy   `json:"mailbox" doc:"Bound of what waits for the actor."`
	Reactions    Reactions       `json:"reactions" doc:"One cell for each kind of fault."`
	Group        *GroupPolicy    `json:"group,omitempty" doc:"What a supervisor does for its children."`
}

// MailboxPolicy bounds what waits for an actor.
type MailboxPolicy struct {
	Limit    int32  `json:"limit" doc:"Messages that may wait."`
	Overflow string `json:"overflow" doc:"What becomes of one more: reject-newest, drop-oldest or fault."`
}

// Reactions has one cell for each kind of fault.
type Reactions struct {
	Panic       Reaction `json:"panic" doc:"A panic, or a Goexit, in a message or a job."`
	Hang        Reaction `json:"hang" doc:"A message or job without progress, or a start that is not acknowledged."`
	ErrorReturn Reaction `json:"errorReturn" doc:"An error that the actor returned."`
	BindFailure Reaction `json:"bindFailure" doc:"A listener that cannot get its address; it costs no budget."`
}

// Reaction is one cell of a policy.
type Reaction struct {
	Do      string   `json:"do" doc:"restart applies the supervisor's strategy within its budget; stop leaves the actor dead; escalate fails the supervisor; park keeps the actor down until the capped back-off has passed."`
	Backoff *Backoff `json:"backoff,omitempty" doc:"The wait before the next start."`
}

// Backoff is an exponential delay.
type Backoff struct {
	Initial metav1.Duration `json:"initial" doc:"First wait."`
	Factor  string          `json:"factor" doc:"What each further wait is multiplied by, as a decimal number."`
	Cap     metav1.Duration `json:"cap" doc:"Longest wait."`
	Jitter  string          `json:"jitter" doc:"Largest random part of a wait, as a decimal number between 0 and 1."`
	Reset   metav1.Duration `json:"reset" doc:"How long the actor has to serve before its failures are forgotten."`
}

// GroupPolicy is what a supervisor does for its children.
type GroupPolicy struct {
	Strategy     string    `json:"strategy" doc:"Which siblings share a child's fate: one_for_one, one_for_all, rest_for_one, or pool for members that come and go, each with a budget of its own."`
	Burst        Intensity `json:"burst" doc:"How many restarts are borne within a short time before the supervisor fails, or a pool's member is parked."`
	Sustained    Intensity `json:"sustained" doc:"How many restarts are borne over a long time."`
	MaxAbandoned int32     `json:"maxAbandoned" doc:"How many abandoned generations are borne before the supervisor fails."`
}

// Intensity is a number of restarts within a window.
type Intensity struct {
	Max    int32           `json:"max" doc:"Restarts."`
	Within metav1.Duration `json:"within" doc:"Window."`
}

// FaultPolicyStatus tells where a policy comes from.
type FaultPolicyStatus struct {
	Overridden bool     `json:"overridden" doc:"Whether the policy differs from its row of the catalog."`
	Overrides  []string `json:"overrides,omitempty" doc:"Fields that differ."`
}

// FaultPolicyList is a list of policies, in the order of their paths.
type FaultPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty" doc:"Standard list metadata."`

	Items []FaultPolicy `json:"items" doc:"The policies."`
}
