package snapshot

import (
	"context"
	"crypto/sha256"
	"hash"
	"io"
)

// Stream hands what source has to w, with the checksum behind it: what w has then taken is a snapshot.
func Stream(ctx context.Context, source Source, w io.Writer) error {
	t := &tailed{w: w, sum: sha256.New()}
	if err := source(ctx, t); err != nil {
		return err
	}
	if t.n%sectorSize == sumSize {
		return nil // it came with one
	}
	_, err := w.Write(t.sum.Sum(nil))
	return err
}

// tailed counts and sums up what passes.
type tailed struct {
	w   io.Writer
	sum hash.Hash
	n   int64
}

// Write implements io.Writer.
func (t *tailed) Write(p []byte) (int, error) {
	n, err := t.w.Write(p)
	t.sum.Write(p[:n])
	t.n += int64(n)
	return n, err
}
