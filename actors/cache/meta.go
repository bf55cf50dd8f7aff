package cache

import (
	"encoding/json"
	"fmt"
	"strings"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Owner is one owner reference.
type Owner struct {
	APIVersion, Kind, Name string
	UID                    types.UID
	// Controller and Blocks are the reference's controller and blockOwnerDeletion marks.
	Controller, Blocks bool
}

// Meta is what indexes know of every stored object, custom resources included. It is immutable.
type Meta struct {
	// Key is the object's store key.
	Key string
	// APIVersion and Kind are those of the stored encoding.
	APIVersion, Kind string
	Namespace, Name  string
	UID              types.UID
	Owners           []Owner
	Finalizers       []string
	// Created is the creation timestamp in Unix seconds.
	Created int64
	// Deleting is set once the object has a deletion timestamp.
	Deleting bool
	// Revision is the object's resourceVersion as a number.
	Revision int64
	// Opaque is set when the metadata could not be read: the object exists, and nothing more is known.
	Opaque bool
}

// HasFinalizer tells whether the object carries the finalizer.
func (m *Meta) HasFinalizer(name string) bool {
	for _, f := range m.Finalizers {
		if f == name {
			return true
		}
	}
	return false
}

// Resource is the API's name of the object's resource in its stored version. For custom resources the plural is read from the key.
func (m *Meta) Resource() schema.GroupVersionResource {
	gv, _ := schema.ParseGroupVersion(m.APIVersion)
	folder, _ := folderOf(m.Key)
	if kind, ok := byFolder[folder]; ok {
		return gv.WithResource(kind.Resource.Resource)
	}
	if i := strings.LastIndexByte(folder, '/'); i >= 0 {
		return gv.WithResource(folder[i+1:])
	}
	return gv.WithResource(folder)
}

// metaOf reads a record's metadata. It never fails: what cannot be read is Opaque, so that nobody takes it for absent.
func metaOf(r Record) *Meta {
	m := &Meta{Key: r.Key, Revision: r.ModRevision}
	var err error
	if isProtobuf(r.Value) {
		err = wireMeta(r.Value, m)
	} else {
		err = jsonMeta(r.Value, m)
	}
	if err != nil || m.Kind == "" || m.UID == "" {
		m.Opaque = true
		m.Namespace, m.Name = nameOf(r.Key)
	}
	return m
}

// nameOf reads namespace and name from a store key.
func nameOf(key string) (namespace, name string) {
	folder, ok := folderOf(key)
	if !ok {
		return "", key
	}
	rest := strings.TrimPrefix(key, registryRoot+folder+"/")
	if namespace, name, ok = strings.Cut(rest, "/"); ok {
		return namespace, name
	}
	return "", rest
}

func jsonMeta(value []byte, into *Meta) error {
	var parsed metav1.PartialObjectMetadata
	if err := json.Unmarshal(value, &parsed); err != nil {
		return fmt.Errorf("cannot read metadata: %w", err)
	}
	into.APIVersion, into.Kind = share(parsed.APIVersion), share(parsed.Kind)
	into.Namespace, into.Name, into.UID = share(parsed.Namespace), parsed.Name, parsed.UID
	into.Deleting, into.Finalizers = parsed.DeletionTimestamp != nil, parsed.Finalizers
	if created := parsed.CreationTimestamp; !created.IsZero() {
		into.Created = created.Unix()
	}
	for _, ref := range parsed.OwnerReferences {
		into.Owners = append(into.Owners, OwnerOf(ref))
	}
	return nil
}

// OwnerOf converts an owner reference of an API object.
func OwnerOf(ref metav1.OwnerReference) Owner {
	return Owner{
		APIVersion: share(ref.APIVersion), Kind: share(ref.Kind), Name: ref.Name, UID: ref.UID,
		Controller: ref.Controller != nil && *ref.Controller,
		Blocks:     ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion,
	}
}

// intern and share keep one copy of words that repeat in thousands of objects.
func intern(b []byte) string { return unique.Make(string(b)).Value() }

func share(s string) string { return unique.Make(s).Value() }

func uid(b []byte) types.UID { return types.UID(b) }
