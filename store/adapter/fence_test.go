package adapter_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"

	"github.com/nodeactor/nodeactor/store/engine"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/test/zombie"
)

// TestFencedGenerationCannotStore: the storage itself refuses a generation that was given up, whatever way its write has come, with a clear
// answer; the engine refuses it with ErrFenced.
func TestFencedGenerationCannotStore(t *testing.T) {
	ctx, f := setup(t)
	if err := f.Create(ctx, "/pods/a/one", &example.Pod{}, nil, 0); err != nil {
		t.Fatal(err)
	}
	label := func(ctx context.Context, generation uint64) error {
		return f.GuaranteedUpdate(ctx, "/pods/a/one", &example.Pod{}, false, nil, storage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
			pod := obj.(*example.Pod)
			pod.Labels = map[string]string{"by": fmt.Sprint(generation)}
			return pod, nil
		}), nil)
	}
	second, first := zombie.Wake(t, label)
	if second != nil || !apierrors.IsForbidden(first) {
		t.Errorf("the current generation: %v, the one that was given up: %v", second, first)
	}
	second, first = zombie.Wake(t, func(ctx context.Context, generation uint64) error {
		return f.Create(ctx, fmt.Sprintf("/pods/a/of-%d", generation), &example.Pod{}, nil, 60)
	})
	if second != nil || !apierrors.IsForbidden(first) {
		t.Errorf("creation: the current generation: %v, the one that was given up: %v", second, first)
	}
	_, first = zombie.Wake(t, func(ctx context.Context, generation uint64) error {
		if generation == 2 {
			return nil
		}
		_, err := f.whole.Backend().Engine.Txn(ctx, engine.Write{Key: "/registry/pods/a/one", Expect: engine.AnyRevision, Delete: true})
		return err
	})
	if !errors.Is(first, supervision.ErrFenced) {
		t.Errorf("the engine: %v", first)
	}
	pod := &example.Pod{}
	if err := f.Get(ctx, "/pods/a/one", storage.GetOptions{}, pod); err != nil || pod.Labels["by"] != "2" {
		t.Errorf("the object is %v, %v", pod, err)
	}
}
