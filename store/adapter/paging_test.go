package adapter_test

import (
	"fmt"
	"testing"

	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

// TestPagesAreOneState: pages read while others write show the state of the first page, also after a restart of everything cached.
func TestPagesAreOneState(t *testing.T) {
	ctx, f := setup(t)
	const n, limit = 50, 7
	for i := range n {
		key, obj := pod(i)
		if err := f.Create(ctx, key, obj, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	token, rv := "", ""
	for page := 0; page == 0 || token != ""; page++ {
		pred := storage.Everything
		pred.Limit, pred.Continue = limit, token
		list := &example.PodList{}
		if err := f.GetList(ctx, "/pods/", storage.ListOptions{Recursive: true, Predicate: pred}, list); err != nil {
			t.Fatalf("page %d: %v", page, err)
		}
		if rv != "" && list.ResourceVersion != rv {
			t.Fatalf("page %d is at %s, the first was at %s", page, list.ResourceVersion, rv)
		}
		rv, token = list.ResourceVersion, list.Continue
		for _, p := range list.Items {
			seen[p.Name] = true
		}
		if token != "" && *list.RemainingItemCount != int64(n-len(seen)) {
			t.Fatalf("page %d: %d remain, want %d", page, *list.RemainingItemCount, n-len(seen))
		}
		// Whatever happens between pages must not show.
		key, _ := pod(n - 1 - page)
		if err := f.Delete(ctx, key, &example.Pod{}, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		key, obj := pod(1000 + page)
		if err := f.Create(ctx, key, obj, nil, 0); err != nil {
			t.Fatal(err)
		}
		if page == 3 {
			f.ForgetRecent()
		}
	}
	for i := range n {
		if !seen[fmt.Sprintf("pod-%d", i)] {
			t.Errorf("pod-%d is missing", i)
		}
	}
	if len(seen) != n {
		t.Errorf("%d objects, want %d", len(seen), n)
	}
}
