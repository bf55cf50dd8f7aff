// Package boltcheck reads a bbolt file page by page, before bbolt maps it, and tells whether bbolt can walk it.
//
// bbolt trusts its pages: a torn one ends the process in a goroutine of bbolt's own, a missing one with a signal of the
// kernel. Neither can be contained, so a file has to be looked at before it is opened. The layout is that of bbolt's file
// format version 2: two meta pages, then branch, leaf and freelist pages with a header of 16 bytes each.
package boltcheck

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
)

// ErrCorrupt is returned when a file exists and bbolt could not walk it.
var ErrCorrupt = errors.New("the file is damaged")

// The file format.
const (
	magic          = 0xED0CDAED
	version        = 2
	headerSize     = 16
	elementSize    = 16
	metaSize       = 64 // without the header: what is summed up, and the sum
	bucketHeader   = 16
	flagBranch     = 0x01
	flagLeaf       = 0x02
	flagMeta       = 0x04
	flagFreelist   = 0x10
	bucketLeaf     = 0x01
	noFreelist     = ^uint64(0)
	smallestPage   = 1 << 9
	largestPage    = 1 << 16
	maxDepth       = 64
	largestContent = 1 << 31
)

// File checks the file at path. A file that is absent or has no byte is fine: bbolt makes a new one. The error names the
// page; the caller names the file.
func File(path string) error {
	f, size, err := open(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if size == 0 {
		return nil
	}
	return corrupt(check(f, size))
}

func open(path string, flags int) (*os.File, int64, error) {
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("cannot check the file: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, 0, fmt.Errorf("cannot check the file: %w", err)
	}
	return f, info.Size(), nil
}

func corrupt(err error) error {
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}

// meta is what a meta page says, and where it is.
type meta struct {
	pageSize                  uint32
	root, freelist, end, txid uint64
	at                        int64
}

// checker walks the pages that a meta page leads to.
type checker struct {
	r    io.ReaderAt
	meta meta
	seen map[uint64]struct{}
}

// check walks what bbolt would walk: the tree of the newest valid meta page.
func check(r io.ReaderAt, size int64) error {
	all, err := metas(r, size)
	if err != nil {
		return err
	}
	return tree(r, size, all[0])
}

func tree(r io.ReaderAt, size int64, m meta) error {
	if m.end < 2 || m.end > uint64(size)/uint64(m.pageSize) {
		return fmt.Errorf("it should have %d pages of %d bytes, and has %d bytes", m.end, m.pageSize, size)
	}
	c := &checker{r: r, meta: m, seen: map[uint64]struct{}{}}
	if err := c.freelist(); err != nil {
		return err
	}
	return c.walk(m.root, keys{}, 0)
}

// metas are the valid ones of the two meta pages, that of the later transaction first, as bbolt chooses.
func metas(r io.ReaderAt, size int64) ([]meta, error) {
	first, err := readMeta(r, 0)
	if err == nil {
		second, err := readMeta(r, int64(first.pageSize))
		switch {
		case err != nil || second.pageSize != first.pageSize:
			return []meta{first}, nil
		case second.txid > first.txid:
			return []meta{second, first}, nil
		}
		return []meta{first, second}, nil
	}
	// The page size is in the page that cannot be read: try those that there are.
	for at := int64(smallestPage); at <= largestPage && at < size; at *= 2 {
		if m, second := readMeta(r, at); second == nil && int64(m.pageSize) == at {
			return []meta{m}, nil
		}
	}
	return nil, fmt.Errorf("neither of its two meta pages is valid: the first: %w", err)
}

func readMeta(r io.ReaderAt, at int64) (meta, error) {
	b := make([]byte, headerSize+metaSize)
	if _, err := r.ReadAt(b, at); err != nil {
		return meta{}, fmt.Errorf("cannot read it: %w", err)
	}
	flags := binary.LittleEndian.Uint16(b[8:])
	b = b[headerSize:]
	u32, u64 := binary.LittleEndian.Uint32, binary.LittleEndian.Uint64
	sum := fnv.New64a()
	sum.Write(b[:metaSize-8])
	m := meta{pageSize: u32(b[8:]), root: u64(b[16:]), freelist: u64(b[32:]), end: u64(b[40:]), txid: u64(b[48:]), at: at}
	switch {
	case flags&flagMeta == 0, u32(b) != magic:
		return meta{}, errors.New("it is not a meta page")
	case u32(b[4:]) != version:
		return meta{}, fmt.Errorf("its format is version %d", u32(b[4:]))
	case u64(b[56:]) != sum.Sum64():
		return meta{}, errors.New("its checksum is wrong")
	case m.pageSize < smallestPage || m.pageSize > largestPage || m.pageSize&(m.pageSize-1) != 0:
		return meta{}, fmt.Errorf("its page size is %d", m.pageSize)
	}
	return m, nil
}
