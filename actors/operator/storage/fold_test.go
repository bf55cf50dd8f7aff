package storage

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/nodeactor/nodeactor/cluster/lease"
)

// TestOrphansAreFolded: names that are made up anew for ever do not fill the store, and their epochs still never go down.
func TestOrphansAreFolded(t *testing.T) {
	bolt, err := openLocal(filepath.Join(t.TempDir(), "store.db"), chosen(nil))
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*local{"memory": Memory().local, "file": bolt} {
		t.Run(name, func(t *testing.T) {
			defer s.Close()
			folds(t, s)
		})
	}
}

func folds(t *testing.T, s *local) {
	me := lease.SessionID{Node: "n", Boot: "1"}
	id := func(i int) ID { return ID{Kind: "K", Name: fmt.Sprintf("%06d", i)} }
	live := func(tx *txn, i int) error {
		made, err := tx.write(Write{ID: id(i)})
		if err != nil || made.err != nil {
			return errors.Join(err, made.err)
		}
		r := lease.Record{}.Taken(me)
		records := []lease.Record{r, r.Released(), r.Released().Taken(me), r.Released().Taken(me).Released()}
		if i == 7 {
			records = records[:3] // it stays held
		}
		for _, next := range records {
			at, _ := readLease(tx, id(i).Key())
			if done, err := tx.append(lease.Write{Manifest: id(i).Key(), Expected: at.Revision, Record: next}); err != nil || done.Err != nil {
				return errors.Join(err, done.Err)
			}
		}
		if i == 3 {
			return nil // it stays
		}
		gone, err := tx.write(Write{ID: id(i), Expected: made.revision, Delete: true})
		return errors.Join(err, gone.err)
	}
	const together = 500 // many have one wait for the disk
	for first := 0; first <= orphansMost; first += together {
		err := s.writer.do(t.Context(), func(tx *txn) error {
			for i := first; i < min(first+together, orphansMost+1); i++ {
				if err := live(tx, i); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var left []string
	if _, err := s.Leases(t.Context(), func(m string, _ lease.Stored) bool { left = append(left, m); return true }); err != nil {
		t.Fatal(err)
	}
	if len(left) > 5 || left[0] != id(3).Key() || left[1] != id(7).Key() {
		t.Fatalf("%d records are left: %q", len(left), left[:min(9, len(left))])
	}
	floor, err := s.Lease(t.Context(), id(0).Key())
	if err != nil || floor.Epoch != 2 || !floor.Free() || floor.Revision == 0 {
		t.Fatalf("of a folded record there is %+v, %v", floor, err)
	}
	for _, w := range []struct {
		write lease.Write
		want  error
	}{
		{lease.Write{Record: lease.Record{}.Taken(me)}, ErrConflict},
		{lease.Write{Expected: floor.Revision, Record: lease.Record{}.Taken(me)}, lease.ErrEpoch},
		{lease.Write{Expected: floor.Revision, Record: floor.Taken(me)}, nil},
	} {
		w.write.Manifest = id(0).Key()
		done, err := s.Append(t.Context(), []lease.Write{w.write})
		if err != nil || !errors.Is(done[0].Err, w.want) {
			t.Errorf("%+v: %v, %v", w.write, done, err)
		}
	}
}
