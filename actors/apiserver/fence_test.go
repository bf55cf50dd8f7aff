package apiserver

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/test/zombie"
)

// TestFencedGenerationCannotWrite: a generation that was given up wakes and writes through the in-process client: each write fails with
// ErrFenced at once, and the object is as its successor left it. What it reads harms nobody.
func TestFencedGenerationCannotWrite(t *testing.T) {
	f := newFixture(t)
	maps := f.admin.CoreV1().ConfigMaps("default")
	if _, err := maps.Create(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	writes := map[string]func(ctx context.Context, who string) error{
		"update": func(ctx context.Context, who string) error {
			m, err := maps.Get(ctx, "one", metav1.GetOptions{})
			if err != nil {
				return fmt.Errorf("it cannot read: %w", err)
			}
			m.Data = map[string]string{"by": who}
			_, err = maps.Update(ctx, m, metav1.UpdateOptions{})
			return err
		},
		"patch": func(ctx context.Context, who string) error {
			_, err := maps.Patch(ctx, "one", types.MergePatchType, []byte(`{"data":{"by":"`+who+`"}}`), metav1.PatchOptions{})
			return err
		},
		"create": func(ctx context.Context, who string) error {
			_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "made-by-" + who}}, metav1.CreateOptions{})
			return err
		},
		"delete": func(ctx context.Context, who string) error {
			if who == "2" {
				return nil
			}
			return maps.Delete(ctx, "one", metav1.DeleteOptions{})
		},
	}
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			second, first := zombie.Wake(t, func(ctx context.Context, generation uint64) error { return write(ctx, fmt.Sprint(generation)) })
			if second != nil {
				t.Errorf("the current generation: %v", second)
			}
			if !errors.Is(first, supervision.ErrFenced) {
				t.Errorf("the generation that was given up: %v", first)
			}
		})
	}
	m, err := maps.Get(f.ctx, "one", metav1.GetOptions{})
	if err != nil || m.Data["by"] != "2" {
		t.Errorf("the object is %v, %v", m, err)
	}
	if _, err := maps.Get(f.ctx, "made-by-1", metav1.GetOptions{}); err == nil {
		t.Error("the generation that was given up has made an object")
	}
}
