package operator

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Specification is what users declare: a struct that JSON can hold, of which a copy may be made at any time.
type Specification interface {
	// Kind names the specification's type in CamelCase and the singular. It is asked of zero values too and always says the same.
	Kind() string
}

// Key names a manifest among those of its kind. Namespace may be empty.
type Key struct{ Namespace, Name string }

// String is the key for people: namespace/name, or the name alone.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// Metadata is what every manifest has beside its specification.
type Metadata struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// UID tells a manifest from an earlier one of the same name.
	UID         string            `json:"uid"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Generation counts the specifications the manifest has had; the first is 1.
	Generation int64     `json:"generation"`
	Created    time.Time `json:"created"`
	// Deleted is when its deletion was asked for; zero while it was not. It is gone when its last finalizer is.
	Deleted    time.Time `json:"deleted,omitzero"`
	Finalizers []string  `json:"finalizers,omitempty"`
}

// Key is the manifest's name with its namespace.
func (m Metadata) Key() Key { return Key{m.Namespace, m.Name} }

// Manifest is what a user wants, by a specification of type S.
type Manifest[S Specification] struct {
	Metadata
	Spec S `json:"spec"`
}

// View is a manifest with its status, as it was when it was read. It shares nothing with anybody.
type View[S Specification] struct {
	Manifest[S]
	Status Status `json:"status"`
}

// Record is a manifest as it is stored: View without its type.
type Record struct {
	Metadata
	// Spec is the canonical form of the specification, Hash its content hash.
	Spec   json.RawMessage `json:"spec"`
	Hash   string          `json:"hash"`
	Status Status          `json:"status"`
}

// Encode is the record as it goes into a store.
func (r Record) Encode() ([]byte, error) {
	value, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("cannot store manifest %s: %w", r.Key(), err)
	}
	return value, nil
}

// DecodeRecord reads what Encode wrote.
func DecodeRecord(value []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(value, &r); err != nil {
		return Record{}, fmt.Errorf("%w: %w", errRecord, err)
	}
	return r, nil
}

// ViewOf gives a record its type.
func ViewOf[S Specification](r Record) (View[S], error) {
	m, err := manifestOf[S](r)
	return View[S]{m, r.Status}, err
}

// manifestOf decodes a record into a copy that is the caller's. Its finalizers are cloned because a pass may edit them.
func manifestOf[S Specification](r Record) (Manifest[S], error) {
	m := Manifest[S]{Metadata: r.Metadata}
	m.Finalizers = slices.Clone(r.Finalizers)
	if err := json.Unmarshal(r.Spec, &m.Spec); err != nil {
		return m, fmt.Errorf("cannot read the specification of %s %s: %w", m.Spec.Kind(), r.Key(), err)
	}
	return m, nil
}

// hasFinalizer tells whether a finalizer holds the manifest.
func (m Metadata) hasFinalizer(name string) bool { return slices.Contains(m.Finalizers, name) }

// Deleting tells whether the deletion was asked for.
func (m Metadata) Deleting() bool { return !m.Deleted.IsZero() }
