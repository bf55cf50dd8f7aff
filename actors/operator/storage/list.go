package storage

import (
	"context"
	"slices"

	"github.com/nodeactor/nodeactor/cluster/lease"
)

// Sizes of the pages in which a store is read, so that no transaction is open while somebody visits.
const (
	pageEntries = 1024
	pageBytes   = 1 << 20
)

// entry is a key with its encoded value.
type entry struct {
	Key   string
	Value []byte
}

// page reads a part of a bucket: what is above after and begins with prefix. more tells that there may be more.
func page(b backend, bucket, prefix, after string) (entries []entry, revision Revision, more bool, err error) {
	size := 0
	err = b.view(func(t table) error {
		revision = revisionOf(t)
		return t.each(bucket, prefix, after, func(key string, value []byte) bool {
			entries = append(entries, entry{key, slices.Clone(value)})
			size += len(key) + len(value)
			more = len(entries) >= pageEntries || size >= pageBytes
			return !more
		})
	})
	return entries, revision, more, err
}

// pager reads pages, here or elsewhere.
type pager func(ctx context.Context, bucket, prefix, after string) (entries []entry, revision Revision, more bool, err error)

func (l *local) page(ctx context.Context, bucket, prefix, after string) ([]entry, Revision, bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, false, err
	}
	return page(l.back, bucket, prefix, after)
}

// all visits what is in a bucket, page by page; the revision is that before the first.
func (read pager) all(ctx context.Context, bucket, prefix string, visit func(entry) bool) (Revision, error) {
	entries, first, more, err := read(ctx, bucket, prefix, "")
	for {
		if err != nil {
			return 0, err
		}
		for _, e := range entries {
			if !visit(e) {
				return first, nil
			}
		}
		if !more {
			return first, nil
		}
		entries, _, more, err = read(ctx, bucket, prefix, entries[len(entries)-1].Key)
	}
}

func (read pager) objects(ctx context.Context, kind string, visit func(Object) bool) (Revision, error) {
	prefix := ""
	if kind != "" {
		prefix = kind + "/"
	}
	return read.all(ctx, objects, prefix, func(e entry) bool {
		id, _ := ParseKey(e.Key)
		revision, value := decodeObject(e.Value)
		return visit(Object{ID: id, Value: value, Revision: revision})
	})
}

func (read pager) leases(ctx context.Context, visit func(string, lease.Stored) bool) (Revision, error) {
	var failed error
	revision, err := read.all(ctx, leases, "", func(e entry) bool {
		var s lease.Stored
		s, failed = decodeLease(e.Value)
		return failed == nil && visit(e.Key, s)
	})
	if failed != nil {
		return 0, failed
	}
	return revision, err
}

// ListObjects implements Store.
func (l *local) ListObjects(ctx context.Context, kind string, visit func(Object) bool) (Revision, error) {
	return pager(l.page).objects(ctx, kind, visit)
}

// Leases implements Store.
func (l *local) Leases(ctx context.Context, visit func(string, lease.Stored) bool) (Revision, error) {
	return pager(l.page).leases(ctx, visit)
}
