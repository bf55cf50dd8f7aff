package operator

import "sync"

// Once remembers, by their UIDs, the manifests whose Finalize has returned nil while that could not be stored yet, so that it is not run again
// only because the store was away. The zero value remembers none; a nil Once never does.
type Once struct {
	mu   sync.Mutex
	uids map[string]struct{}
}

func (o *Once) has(uid string) bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.uids[uid]
	return ok
}

func (o *Once) add(uid string) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.uids == nil {
		o.uids = map[string]struct{}{}
	}
	o.uids[uid] = struct{}{}
}

func (o *Once) forget(uid string) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.uids, uid)
}
