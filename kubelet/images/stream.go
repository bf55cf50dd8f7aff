package images

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// First bytes of the compressions a layer or archive may have.
var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// meter counts and reports what is read, ends with its context, and remembers why its source failed.
type meter struct {
	ctx      context.Context
	r        io.Reader
	p        *Progress
	report   func(Progress) // may be nil
	reported int64
	failed   error
}

func (m *meter) Read(b []byte) (int, error) {
	if m.failed = context.Cause(m.ctx); m.failed != nil {
		return 0, m.failed
	}
	n, err := m.r.Read(b)
	m.p.Bytes += int64(n)
	if m.report != nil && (err != nil || m.p.Bytes-m.reported >= copyBufferSize) {
		m.reported = m.p.Bytes
		m.report(*m.p)
	}
	if err != io.EOF {
		m.failed = err
	}
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
