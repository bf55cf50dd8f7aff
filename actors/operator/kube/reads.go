package kube

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/nodeactor/nodeactor/actors/cache"
)

// Self declares the manifests' own kind: every change concerns the manifest itself.
func Self(kind cache.Kind) Read {
	return Read{Kind: kind, Keys: func(_ *cache.Cache, change cache.Change) []Key {
		meta := change.Meta()
		return []Key{{Namespace: meta.Namespace, Name: meta.Name}}
	}}
}

// Controlled declares a kind whose objects are controlled by manifests: a change concerns the controllers before and after it.
func Controlled(kind cache.Kind, manifest schema.GroupVersionKind) Read {
	return Read{Kind: kind, Keys: func(_ *cache.Cache, change cache.Change) []Key {
		return ControllersOf(change, manifest)
	}}
}

// ControllersOf names the controllers of a kind that an object had before and has after a change.
func ControllersOf(change cache.Change, kind schema.GroupVersionKind) []Key {
	var keys []Key
	for _, meta := range []*cache.Meta{change.OldMeta, change.NewMeta} {
		if key, ok := controllerOf(meta, kind); ok && (len(keys) == 0 || keys[0] != key) {
			keys = append(keys, key)
		}
	}
	return keys
}

func controllerOf(meta *cache.Meta, kind schema.GroupVersionKind) (Key, bool) {
	if meta == nil {
		return Key{}, false
	}
	for _, owner := range meta.Owners {
		if !owner.Controller || owner.Kind != kind.Kind {
			continue
		}
		gv, err := schema.ParseGroupVersion(owner.APIVersion)
		if err == nil && gv.Group == kind.Group {
			return Key{Namespace: meta.Namespace, Name: owner.Name}, true
		}
	}
	return Key{}, false
}

// Every names the objects of a kind that exist now.
func Every(reader *cache.Cache, kind cache.Kind) []Key {
	var keys []Key
	for _, name := range reader.Names(kind) {
		keys = append(keys, Key{Namespace: name.Namespace, Name: name.Name})
	}
	return keys
}

// Silent declares a kind that is read but whose changes wake nobody.
func Silent(kind cache.Kind) Read { return Read{Kind: kind} }
