package supervisionapi

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of the kinds.
const GroupName = "supervision.nodeactor.io"

// The resources, in the plural that paths have.
const (
	Actors        = "actors"
	FaultPolicies = "faultpolicies"
)

// LabelRow is the label with an actor's or policy's row of the catalog.
const LabelRow = GroupName + "/row"

// GroupVersion is the group and version of the kinds.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// Resource names a resource of the group.
func Resource(name string) schema.GroupResource {
	return schema.GroupResource{Group: GroupName, Resource: name}
}

// AddToScheme makes the kinds known.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Actor{}, &ActorList{}, &FaultPolicy{}, &FaultPolicyList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
