package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// TestAWatchFromFarBehindClaimsOnlyWhatItHasShown: the library hands out a long history in pieces, each with the newest revision on it.
func TestAWatchFromFarBehindClaimsOnlyWhatItHasShown(t *testing.T) {
	m := openAt(t, t.TempDir())
	ctx := context.Background()
	before := m.Revision()
	const writes = 2500
	for i := range writes {
		if _, err := m.Txn(ctx, Write{Key: fmt.Sprintf("k%d", i%7), Expect: AnyRevision, Value: []byte("v")}); err != nil {
			t.Fatal(err)
		}
	}
	enough, seen, told := errors.New("enough"), 0, before
	err := m.Watch(ctx, First, Last, before, func(b Batch) error {
		for _, c := range b.Changes {
			if c.KV.ModRevision <= told {
				t.Fatalf("a change of revision %d comes after revision %d was claimed", c.KV.ModRevision, told)
			}
			seen++
		}
		if told = b.Revision; seen < writes {
			return nil
		}
		return enough
	})
	if !errors.Is(err, enough) || seen != writes {
		t.Fatalf("saw %d of %d changes: %v", seen, writes, err)
	}
}
