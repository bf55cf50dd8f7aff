package served

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"

	"github.com/nodeactor/nodeactor/actors/operator"
)

const (
	// commitTries bounds how often a write is tried on a newer version.
	commitTries = 5
	// commitDeadline bounds a write whose context has no nearer end.
	commitDeadline = 10 * time.Second
)

// writer writes what passes come to.
type writer struct {
	client   dynamic.NamespaceableResourceInterface
	resource Resource
	// newest reads an object's newest stored version; nil when there is none.
	newest func(namespace, name string) (*object, error)
}

func (w *writer) at(o *object) dynamic.ResourceInterface {
	if w.resource.Namespaced {
		return w.client.Namespace(o.Namespace)
	}
	return w.client
}

// commit brings a change to an object that is still the one with this uid, on top of what others have written of it meanwhile.
// operator.ErrNotFound is returned when it is gone.
func (w *writer) commit(ctx context.Context, key operator.Key, uid string, change operator.Change) (*object, error) {
	ctx, cancel := context.WithTimeout(ctx, commitDeadline)
	defer cancel()
	var o *object
	var err error
	for range commitTries {
		o, err = w.newest(key.Namespace, key.Name)
		switch {
		case err != nil:
			return nil, err
		case o == nil || string(o.UID) != uid:
			return nil, operator.ErrNotFound
		}
		if err = w.apply(ctx, o, change); !apierrors.IsConflict(err) {
			break
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, operator.ErrNotFound
	case err != nil:
		return nil, fmt.Errorf("cannot store what the pass of %s %s came to: %w", w.resource.Kind, key, err)
	}
	return o, nil
}

// apply writes first what holds the object, then its status, and last lets it go: whatever fails between leaves something that the next pass
// completes.
func (w *writer) apply(ctx context.Context, o *object, change operator.Change) error {
	if change.AddFinalizers = w.missing(o, change.AddFinalizers); len(change.AddFinalizers) > 0 {
		if err := w.finalizers(ctx, o, append(slices.Clone(o.Finalizers), change.AddFinalizers...)); err != nil {
			return err
		}
	}
	kept := slices.DeleteFunc(slices.Clone(o.Finalizers), func(f string) bool { return slices.Contains(change.RemoveFinalizers, f) })
	goes := o.DeletionTimestamp != nil && len(kept) == 0
	if change.Status != nil && !goes {
		if err := w.status(ctx, o, *change.Status); err != nil {
			return err
		}
	}
	if len(kept) < len(o.Finalizers) {
		return w.finalizers(ctx, o, kept)
	}
	return nil
}

// missing are the finalizers that are to be added. An object that is being deleted takes none.
func (w *writer) missing(o *object, add []string) []string {
	if o.DeletionTimestamp != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(add), func(f string) bool { return slices.Contains(o.Finalizers, f) })
}

// finalizers patches who holds an object.
func (w *writer) finalizers(ctx context.Context, o *object, list []string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": o.UID, "resourceVersion": o.ResourceVersion, "finalizers": list}})
	if err != nil {
		return err
	}
	after, err := w.at(o).Patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	o.ResourceVersion, o.Finalizers = after.GetResourceVersion(), list
	o.whole["metadata"] = after.Object["metadata"]
	return nil
}

// status writes the status, if it says something else.
func (w *writer) status(ctx context.Context, o *object, wanted operator.Status) error {
	after := o.status.on(wanted)
	if reflect.DeepEqual(plain(after), plain(o.status)) {
		return nil
	}
	whole := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(o.whole)}
	whole.SetResourceVersion(o.ResourceVersion)
	whole.Object["status"] = plain(after)
	written, err := w.at(o).UpdateStatus(ctx, whole, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	o.ResourceVersion, o.status = written.GetResourceVersion(), after
	return nil
}

// plain is a status as the API has it. What it holds has been encoded before.
func plain(s status) map[string]any {
	var object map[string]any
	text, err := json.Marshal(s)
	if err == nil {
		err = utiljson.Unmarshal(text, &object)
	}
	if err != nil {
		return nil
	}
	return object
}
