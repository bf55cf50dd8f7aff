package images

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// First bytes of the compressions a layer or archive may have.
var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// tally adds up the progress of one install and reports it, one report at a time.
type tally struct {
	report func(Progress) // may be nil

	mu       sync.Mutex
	p        Progress
	reported int64
}

// add counts bytes; the end of a layer is always reported.
func (t *tally) add(n int, end bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.p.Bytes += int64(n)
	if t.report != nil && (end || t.p.Bytes-t.reported >= copyBufferSize) {
		t.reported = t.p.Bytes
		t.report(t.p)
	}
}

// nextLayer says that the next layer is being unpacked.
func (t *tally) nextLayer() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.p.Layer++
	if t.report != nil {
		t.report(t.p)
	}
}

// meter counts what is read, ends with its context, and remembers why its source failed.
type meter struct {
	ctx    context.Context
	r      io.Reader
	tally  *tally // may be nil
	failed error
}

func (m *meter) Read(b []byte) (int, error) {
	if m.failed = context.Cause(m.ctx); m.failed != nil {
		return 0, m.failed
	}
	n, err := m.r.Read(b)
	if m.tally != nil {
		m.tally.add(n, err != nil)
	}
	if err != io.EOF {
		m.failed = err
	}
	return n, err
}

// roomyWriter counts what is written, and asks for room as it grows: a small archive may hold huge files of zeros, and
// must not be able to fill the disk the node lives on.
type roomyWriter struct {
	w       io.Writer
	room    func() error
	n       int64 // bytes written
	checked int64 // of which at the last look at the disk
}

func (w *roomyWriter) Write(p []byte) (int, error) {
	if w.n-w.checked >= roomCheckSize {
		w.checked = w.n
		if err := w.room(); err != nil {
			return 0, err
		}
	}
	n, err := w.w.Write(p)
	w.n += int64(n)
	return n, err
}

// decompress recognises gzip and zstd by their first bytes and takes anything else as it is. Errors that come from the
// data and not from its source are ErrCorrupt. The caller calls done in the end.
func decompress(source *meter) (plain io.Reader, done func(), err error) {
	buffered := bufio.NewReaderSize(source, copyBufferSize)
	magic, err := buffered.Peek(len(zstdMagic))
	if err != nil && err != io.EOF {
		return nil, nil, err
	}
	switch {
	case bytes.HasPrefix(magic, gzipMagic):
		z, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, nil, source.blame(err)
		}
		return blaming{z, source}, func() { z.Close() }, nil
	case bytes.HasPrefix(magic, zstdMagic):
		z, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, nil, source.blame(err)
		}
		return blaming{z, source}, z.Close, nil
	}
	return buffered, func() {}, nil
}

// blame decides whether the data or its source is the reason for a decompressor's error.
func (m *meter) blame(err error) error {
	if err == nil || err == io.EOF || m.failed != nil {
		return err
	}
	return fmt.Errorf("%w: %w", ErrCorrupt, err)
}

// blaming is a decompressor whose errors are judged by blame.
type blaming struct {
	io.Reader
	source *meter
}

func (b blaming) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	return n, b.source.blame(err)
}
