package catalog

import (
	"encoding/json"
	"testing"

	"github.com/nodeactor/nodeactor/supervision"
)

// FuzzOverrides holds that whatever is written, it is refused or gives a tree that is valid.
func FuzzOverrides(f *testing.F) {
	for _, text := range refused() {
		f.Add([]byte(text))
	}
	f.Add([]byte(`[{"row":"reconciler","on":` + all(`{"do":"park",`+fullCurve+`}`) + `},{"path":"node","restarts":{"burst":{"max":2,"within":"1m"},"sustained":{"max":9,"within":"1h"}}}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var list []Override
		if json.Unmarshal(text, &list) != nil {
			return
		}
		root := smallTree()
		if Apply(&root, list) != nil {
			return
		}
		each(&root, root.ID, func(path string, s *supervision.Spec) {
			if err := s.ChildSpec.Validate(); err != nil {
				t.Errorf("%s was accepted: %s: %v", text, path, err)
			}
		})
		Describe(&root, list)
	})
}
