package served

import (
	"encoding/json"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
)

// status is the status of a custom resource: that of its manifest, with conditions as the API has them.
type status struct {
	Phase              operator.Phase  `json:"phase,omitempty" doc:"Pending, Ready, Retrying, Parked or Deleting."`
	ObservedGeneration int64           `json:"observedGeneration,omitempty" doc:"The generation that the last pass saw."`
	ObservedHash       string          `json:"observedHash,omitempty" doc:"The hash of the specification that the last pass saw."`
	Attempts           int             `json:"attempts,omitempty" doc:"How many passes have failed since one ended well."`
	LastError          string          `json:"lastError,omitempty" doc:"What the last failed pass failed of."`
	NextTry            time.Time       `json:"nextTry,omitzero" doc:"When the next pass begins after a failed one."`
	Conditions         conditions      `json:"conditions,omitempty"`
	Value              json.RawMessage `json:"value,omitempty" doc:"What the operator says."`
}

// condition is one condition.
type condition struct {
	Type               string                   `json:"type"`
	Status             operator.ConditionStatus `json:"status"`
	Reason             string                   `json:"reason,omitempty"`
	Message            string                   `json:"message,omitempty"`
	LastTransitionTime time.Time                `json:"lastTransitionTime,omitzero"`
}

// conditions are a list with one condition of a type.
type conditions []condition

// OpenAPISchema says so.
func (conditions) OpenAPISchema() []byte {
	return []byte(`{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["type"],
		"items":{"type":"object","required":["type","status"],"properties":{
		"type":{"type":"string"},"status":{"type":"string","enum":["True","False","Unknown"]},
		"reason":{"type":"string"},"message":{"type":"string"},
		"observedGeneration":{"type":"integer","format":"int64"},
		"lastTransitionTime":{"type":"string","format":"date-time"}}}}`)
}

// isOurs tells the conditions that the node keeps, not the operator.
func isOurs(kind string) bool { return kind == kube.ConditionHealthy || kind == kube.ConditionHotLoop }

// manifest is the status as an operator sees it: without what the node says of the operator.
func (s status) manifest() operator.Status {
	m := operator.Status{
		Phase: s.Phase, ObservedGeneration: s.ObservedGeneration, ObservedHash: s.ObservedHash, Attempts: s.Attempts,
		LastError: s.LastError, NextTry: s.NextTry, Value: s.Value,
	}
	if m.Phase == "" {
		m.Phase = operator.PhasePending
	}
	for _, c := range s.Conditions {
		if !isOurs(c.Type) {
			m.Conditions = append(m.Conditions, operator.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime})
		}
	}
	return m
}

// on makes the status of what is stored now and what a pass wants stored: what the node says of the operator stays.
func (s status) on(m operator.Status) status {
	after := status{
		Phase: m.Phase, ObservedGeneration: m.ObservedGeneration, ObservedHash: m.ObservedHash, Attempts: m.Attempts,
		LastError: m.LastError, NextTry: m.NextTry, Value: m.Value,
	}
	for _, c := range m.Conditions {
		if !isOurs(c.Type) {
			after.Conditions = append(after.Conditions, condition{c.Type, c.Status, c.Reason, c.Message, c.Since})
		}
	}
	for _, c := range s.Conditions {
		if isOurs(c.Type) {
			after.Conditions = append(after.Conditions, c)
		}
	}
	return after
}
