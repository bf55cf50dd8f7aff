package boltcheck

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// page is one page with its overflow.
type page struct {
	id    uint64
	flags uint16
	count int
	data  []byte
}

// at reads a page and checks its header.
func (c *checker) at(id uint64) (page, error) {
	if id < 2 || id >= c.meta.end {
		return page{}, fmt.Errorf("page %d is referred to, there are %d", id, c.meta.end)
	}
	size := int64(c.meta.pageSize)
	first := make([]byte, size)
	if _, err := c.r.ReadAt(first, int64(id)*size); err != nil {
		return page{}, fmt.Errorf("page %d cannot be read: %w", id, err)
	}
	p := page{id: id, flags: binary.LittleEndian.Uint16(first[8:]), count: int(binary.LittleEndian.Uint16(first[10:])), data: first}
	if own := binary.LittleEndian.Uint64(first); own != id {
		return page{}, fmt.Errorf("page %d says that it is page %d", id, own)
	}
	pages := uint64(binary.LittleEndian.Uint32(first[12:])) + 1
	if id+pages > c.meta.end || pages*uint64(size) > largestContent {
		return page{}, fmt.Errorf("page %d says that it has %d pages", id, pages)
	}
	for i := id; i < id+pages; i++ {
		if _, twice := c.seen[i]; twice {
			return page{}, fmt.Errorf("page %d is referred to twice", i)
		}
		c.seen[i] = struct{}{}
	}
	if pages > 1 {
		p.data = make([]byte, int64(pages)*size)
		copy(p.data, first)
		if _, err := c.r.ReadAt(p.data[size:], int64(id+1)*size); err != nil {
			return page{}, fmt.Errorf("page %d cannot be read: %w", id, err)
		}
	}
	return p, nil
}

// freelist checks the list of free pages, when the file keeps one.
func (c *checker) freelist() error {
	if c.meta.freelist == noFreelist {
		return nil
	}
	p, err := c.at(c.meta.freelist)
	if err != nil {
		return fmt.Errorf("freelist: %w", err)
	}
	if p.flags != flagFreelist {
		return fmt.Errorf("freelist: page %d is of kind %#x", p.id, p.flags)
	}
	count, at := uint64(p.count), uint64(headerSize)
	if p.count == 0xFFFF {
		count, at = binary.LittleEndian.Uint64(p.data[headerSize:]), headerSize+8
	}
	if count > uint64(len(p.data)) || at+count*8 > uint64(len(p.data)) {
		return fmt.Errorf("freelist: page %d says that it has %d entries", p.id, count)
	}
	for i := range count {
		if free := binary.LittleEndian.Uint64(p.data[at+i*8:]); free < 2 || free >= c.meta.end {
			return fmt.Errorf("freelist: page %d is said to be free, there are %d", free, c.meta.end)
		}
	}
	return nil
}

// keys is the range that the branch above gives to a page: from the first, to before the end if there is one.
type keys struct{ first, end []byte }

// add takes the next key of a page, the one with index i.
func (k *keys) add(p page, i int, key []byte) error {
	order := bytes.Compare(key, k.first)
	if order < 0 || i > 0 && order == 0 || k.end != nil && bytes.Compare(key, k.end) >= 0 {
		return fmt.Errorf("the keys of page %d are out of order", p.id)
	}
	k.first = key
	return nil
}

// walk checks a page and everything below it.
func (c *checker) walk(id uint64, within keys, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("page %d is %d levels deep", id, depth)
	}
	p, err := c.at(id)
	if err != nil {
		return err
	}
	switch p.flags {
	case flagBranch:
		return c.branch(p, within, depth)
	case flagLeaf:
		return c.leaf(p, within, depth)
	}
	return fmt.Errorf("page %d is of kind %#x", p.id, p.flags)
}

// element returns the bytes of element i: its fixed part and what it points to from there.
func (p page) element(i int) (fixed, rest []byte, err error) {
	at := headerSize + i*elementSize
	if at+elementSize > len(p.data) {
		return nil, nil, fmt.Errorf("page %d says that it has %d elements", p.id, p.count)
	}
	return p.data[at : at+elementSize], p.data[at:], nil
}

// span cuts size bytes at pos, if they are there.
func (p page) span(b []byte, pos, size uint64) ([]byte, error) {
	if pos > uint64(len(b)) || size > uint64(len(b))-pos {
		return nil, fmt.Errorf("an element of page %d lies outside of it", p.id)
	}
	return b[pos : pos+size], nil
}

func (c *checker) branch(p page, within keys, depth int) error {
	if p.count == 0 {
		return fmt.Errorf("page %d leads nowhere", p.id)
	}
	children := make([]uint64, p.count)
	ranges := make([]keys, p.count)
	for i := range p.count {
		fixed, rest, err := p.element(i)
		if err != nil {
			return err
		}
		key, err := p.span(rest, uint64(binary.LittleEndian.Uint32(fixed)), uint64(binary.LittleEndian.Uint32(fixed[4:])))
		if err != nil {
			return err
		}
		if err := within.add(p, i, key); err != nil {
			return err
		}
		children[i], ranges[i] = binary.LittleEndian.Uint64(fixed[8:]), keys{key, within.end}
		if i > 0 {
			ranges[i-1].end = key
		}
	}
	for i, child := range children {
		if err := c.walk(child, ranges[i], depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) leaf(p page, within keys, depth int) error {
	for i := range p.count {
		fixed, rest, err := p.element(i)
		if err != nil {
			return err
		}
		pos, ksize, vsize := uint64(binary.LittleEndian.Uint32(fixed[4:])), uint64(binary.LittleEndian.Uint32(fixed[8:])), uint64(binary.LittleEndian.Uint32(fixed[12:]))
		both, err := p.span(rest, pos, ksize+vsize)
		if err != nil {
			return err
		}
		key, value := both[:ksize], both[ksize:]
		if err := within.add(p, i, key); err != nil {
			return err
		}
		if binary.LittleEndian.Uint32(fixed)&bucketLeaf != 0 {
			if err := c.bucket(p, value, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// bucket checks what is in a bucket: pages of its own, or one page inside the value.
func (c *checker) bucket(p page, value []byte, depth int) error {
	if len(value) < bucketHeader {
		return fmt.Errorf("a bucket of page %d is too short", p.id)
	}
	if root := binary.LittleEndian.Uint64(value); root != 0 {
		return c.walk(root, keys{}, depth+1)
	}
	inside := value[bucketHeader:]
	if len(inside) < headerSize {
		return fmt.Errorf("a bucket of page %d is too short", p.id)
	}
	in := page{id: p.id, flags: binary.LittleEndian.Uint16(inside[8:]), count: int(binary.LittleEndian.Uint16(inside[10:])), data: inside}
	if in.flags != flagLeaf {
		return fmt.Errorf("a bucket inside page %d is of kind %#x", p.id, in.flags)
	}
	if depth > maxDepth {
		return fmt.Errorf("the buckets of page %d are too deep", p.id)
	}
	return c.leaf(in, keys{}, depth+1)
}
