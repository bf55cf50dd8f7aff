package index

import "github.com/nodeactor/nodeactor/store/engine"

// Reset puts the state at revision, which is not older than the index, in the place of what is indexed, after a gap in what was applied.
// Nobody is told what happened in the gap: every subscription ends with ErrCompacted, as its reader has to list again. What was decoded of
// objects that have not changed stays. It is called as Apply is.
func (x *Index) Reset(kvs []engine.KV, revision int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for s := range x.subs {
		s.tooOld, s.cursors = true, nil
		s.wake()
	}
	before := x.resources
	x.resources = map[string]*resource{}
	x.rev, x.loaded, x.compacted = revision, revision, revision
	for _, kv := range kvs {
		item := NewItem(kv)
		dir := DirOf(kv.Key)
		if old := before[dir]; old != nil {
			if known, ok := old.tree.Get(item); ok && known.ModRevision == item.ModRevision {
				item = known
			}
		}
		r := x.resource(dir)
		r.tree.Set(item)
		r.bytes += int64(len(item.Value))
	}
	x.release(func(w waiter) bool { return w.rev <= x.rev })
}
