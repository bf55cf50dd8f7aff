package lease

import "fmt"

// Fence is what a write carries that is done under a lease.
type Fence struct {
	Manifest string
	Holder   SessionID
	Epoch    uint64
}

// Check tells whether a write under the fence may be done while the lease is as recorded; ErrFenced is returned when not. A free lease
// admits nobody: who released it has said that it is done.
func (f Fence) Check(r Record) error {
	if f.Epoch == 0 || f.Epoch != r.Epoch || f.Holder != r.Holder {
		return fmt.Errorf("cannot write for %s under epoch %d of %s, the lease is at %d of %s: %w",
			f.Manifest, f.Epoch, f.Holder, r.Epoch, r.Holder, ErrFenced)
	}
	return nil
}
