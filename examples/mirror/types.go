package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// finalizer keeps a Mirror until its copies are gone.
	finalizer = "example.com/copies"
	// copyOf marks a copy; its value is NAMESPACE.NAME of the Mirror.
	copyOf = "example.com/copy-of"
)

var mirrors = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "mirrors"}

// Mirror asks for copies of a ConfigMap in other namespaces; see crd.yaml.
type Mirror struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              MirrorSpec   `json:"spec"`
	Status            MirrorStatus `json:"status,omitempty"`
}

// MirrorSpec is what is wanted.
type MirrorSpec struct {
	// ConfigMap is the name of the original, in the namespace of the Mirror.
	ConfigMap string `json:"configMap"`
	// Namespaces are where copies are to be.
	Namespaces []string `json:"namespaces"`
}

// MirrorStatus is what there is.
type MirrorStatus struct {
	Copies             int64              `json:"copies"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

func fromObject(o *unstructured.Unstructured) (*Mirror, error) {
	m := &Mirror{}
	return m, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, m)
}

func (m *Mirror) toObject() (*unstructured.Unstructured, error) {
	o, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	return &unstructured.Unstructured{Object: o}, err
}

// key is the value of copyOf.
func (m *Mirror) key() string { return m.Namespace + "." + m.Name }
