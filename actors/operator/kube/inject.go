package kube

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/nodeactor/nodeactor/actors/cache"
)

// InjectAnnotation asks for a fault of every reconciler of the object that carries it, for as long as it does: panic, hang or error. It
// is honoured only where faults may be injected.
const InjectAnnotation = "nodeactor.io/inject-fault"

// injectLook is how often an injected hang looks whether it is still asked for.
const injectLook = 200 * time.Millisecond

// inject does what the object's annotation asks for.
func (r *runner) inject(ctx context.Context, key Key) error {
	if !r.deps.InjectFaults {
		return nil
	}
	switch kind := r.injected(key); kind {
	case "panic":
		panic("injected by annotation " + InjectAnnotation)
	case "error":
		return fmt.Errorf("cannot reconcile: injected by annotation %s", InjectAnnotation)
	case "hang":
		for r.injected(key) == "hang" { // deaf to its context, as what hangs is
			_ = r.deps.Clock.Sleep(context.WithoutCancel(ctx), injectLook)
		}
	}
	return nil
}

// injected is the annotation's value in the newest stored state.
func (r *runner) injected(key Key) string {
	about := r.controller.about(r.deps.Cache, key)
	if about == nil {
		return ""
	}
	record, ok := r.deps.Cache.Record(kindOf(objectOf(about)), about.Namespace, about.Name)
	if !ok || !cache.IsTyped(record.Key) {
		return ""
	}
	object, err := record.Object()
	if err != nil {
		return ""
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return ""
	}
	return accessor.GetAnnotations()[InjectAnnotation]
}
