package replicagroup

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Group is a ReplicaGroup as the API has it.
type Group struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              Spec   `json:"spec"`
	Status            Status `json:"status"`
}

// Spec is what a user declares.
type Spec struct {
	Replicas int    `json:"replicas"`
	Size     string `json:"size"`
	// Zones are those replicas may be in; empty for any.
	Zones []string `json:"zones,omitempty"`
	// PodTemplate is a PodTemplateSpec as it was written, so that its version does not depend on what this program knows of pods.
	PodTemplate     json.RawMessage `json:"podTemplate"`
	Reconfiguration Reconfigure     `json:"reconfiguration,omitzero"`
	Schedule        *Schedule       `json:"schedule,omitempty"`
	HydrationBurst  *Burst          `json:"hydrationBurst,omitempty"`
}

// Reconfigure says how a change of shape goes about.
type Reconfigure struct {
	Timeout   *metav1.Duration `json:"timeout,omitempty"`
	OnTimeout string           `json:"onTimeout,omitempty"`
}

// Schedule says when there is a replica; without one there always are.
type Schedule struct {
	OnRefresh OnRefresh `json:"onRefresh"`
}

// OnRefresh has a replica only while something is to be refreshed.
type OnRefresh struct {
	HydrationEstimate  metav1.Duration `json:"hydrationEstimate,omitzero"`
	CompactionEstimate metav1.Duration `json:"compactionEstimate,omitzero"`
	Objects            []Refreshed     `json:"objects"`
}

// Refreshed is something that is computed anew on a schedule.
type Refreshed struct {
	Name      string          `json:"name"`
	Every     metav1.Duration `json:"every"`
	AlignedTo *metav1.Time    `json:"alignedTo,omitempty"`
	// Reported tells that an annotation of the group says up to when the object is complete.
	Reported bool `json:"reported,omitempty"`
}

// Burst asks for one more replica of another size while no steady one is ready.
type Burst struct {
	Size   string           `json:"size"`
	Linger *metav1.Duration `json:"linger,omitempty"`
}

// Status is what is stored about a group, and what people see of it.
type Status struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Accepted           *Accepted          `json:"accepted,omitempty"`
	Realized           *Config            `json:"realized,omitempty"`
	Reconfiguration    *Record            `json:"reconfiguration,omitempty"`
	HydrationBurst     *BurstRecord       `json:"hydrationBurst,omitempty"`
	Ready              string             `json:"ready,omitempty"`
	Replicas           int                `json:"replicas"`
	ReadyReplicas      int                `json:"readyReplicas"`
	Selector           string             `json:"selector,omitempty"`
	Members            []Member           `json:"members,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// Accepted is what is in force of the last spec that could be accepted, apart from the shape.
type Accepted struct {
	Generation        int64           `json:"generation"`
	OnRefresh         bool            `json:"onRefresh,omitempty"`
	HydrationEstimate metav1.Duration `json:"hydrationEstimate,omitzero"`
	HydrationBurst    *Burst          `json:"hydrationBurst,omitempty"`
}

// Config is how many replicas of which shape there are to be.
type Config struct {
	// Shape is the whole for people.
	Shape    string   `json:"shape"`
	Replicas int      `json:"replicas"`
	Size     string   `json:"size"`
	Zones    []string `json:"zones,omitempty"`
	Template string   `json:"template"`
}

// Record is the record of the last change of shape.
type Record struct {
	Generation int64            `json:"generation"`
	Target     Config           `json:"target"`
	Started    metav1.MicroTime `json:"started"`
	Deadline   metav1.MicroTime `json:"deadline"`
	OnTimeout  string           `json:"onTimeout"`
	Status     string           `json:"status"`
	// Ready tells how many replicas of the target are ready while the change is in progress.
	Ready string `json:"ready,omitempty"`
}

// BurstRecord is the record of a hydration burst.
type BurstRecord struct {
	Size       string            `json:"size"`
	HydratedAt *metav1.MicroTime `json:"hydratedAt,omitempty"`
	Shed       bool              `json:"shed,omitempty"`
}

// Member is one replica for people.
type Member struct {
	Name  string `json:"name"`
	Pod   string `json:"pod"`
	Shape string `json:"shape"`
	// Reason names the strategies that wanted it when it was made.
	Reason string `json:"reason,omitempty"`
	Ready  bool   `json:"ready"`
}

// SizeClass says how much a replica of a size has.
type SizeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              Size `json:"spec"`
}

// Size is what the first container of a replica requests, and is limited to.
type Size struct {
	CPU    resource.Quantity `json:"cpu"`
	Memory resource.Quantity `json:"memory"`
}
