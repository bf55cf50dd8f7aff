package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/nodeactor/nodeactor/actors/operator/storage"
)

// maxTries bounds how often a write is tried again because somebody else wrote the same manifest between its read and its write.
const maxTries = 100

// client reads and writes manifests of one kind as their users do: without a lease.
type client struct {
	kind  string
	store storage.Store
	opts  options
	// made counts the manifests it made, to tell them apart.
	made atomic.Uint64
}

// parseKey reads namespace/name, or name alone.
func parseKey(name string) Key {
	if namespace, rest, ok := strings.Cut(name, "/"); ok {
		return Key{namespace, rest}
	}
	return Key{Name: name}
}

// check refuses what a store might take and a manifest cannot be called. Names are stored as text, in which bytes that are no UTF-8 would
// become others; a colon separates namespace and name in the tree of actors.
func (k Key) check() error {
	for _, part := range []struct{ what, text string }{{"namespace", k.Namespace}, {"name", k.Name}} {
		switch {
		case !utf8.ValidString(part.text):
			return fmt.Errorf("cannot use %q as a %s: it is not valid UTF-8: %w", part.text, part.what, ErrName)
		case strings.Contains(part.text, ":"):
			return fmt.Errorf("cannot use %q as a %s: it contains a colon: %w", part.text, part.what, ErrName)
		}
	}
	return nil
}

func (c *client) id(key Key) storage.ID {
	return storage.ID{Kind: c.kind, Namespace: key.Namespace, Name: key.Name}
}

// get reads a record and its revision.
func (c *client) get(ctx context.Context, key Key) (Record, storage.Revision, error) {
	return readRecord(ctx, c.store, c.id(key))
}

// readRecord reads the record of an object; ErrNotFound is returned when there is none.
func readRecord(ctx context.Context, store storage.Store, id storage.ID) (Record, storage.Revision, error) {
	obj, err := store.GetObject(ctx, id)
	if err != nil {
		return Record{}, 0, err
	}
	if obj.Revision == 0 {
		return Record{}, 0, ErrNotFound
	}
	rec, err := DecodeRecord(obj.Value)
	return rec, obj.Revision, err
}

// list visits all records in order. One that cannot be read is left out and named in the error.
func (c *client) list(ctx context.Context, visit func(Record) error) error {
	return visitRecords(ctx, c.store, c.kind, visit)
}

func visitRecords(ctx context.Context, store storage.Store, kind string, visit func(Record) error) error {
	var errs []error
	_, err := store.ListObjects(ctx, kind, func(obj storage.Object) bool {
		rec, err := DecodeRecord(obj.Value)
		if err == nil {
			err = visit(rec)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("cannot read %s: %w", obj.Key(), err))
		}
		return len(errs) < maxTries
	})
	return errors.Join(append(errs, err)...)
}

// put creates a record or changes it.
func (c *client) put(ctx context.Context, key Key, change func(*Record) error) error {
	if err := key.check(); err != nil {
		return fmt.Errorf("cannot store %s %s: %w", c.kind, strings.ToValidUTF8(key.String(), "?"), err)
	}
	err := c.again(ctx, func() error {
		rec, revision, err := c.get(ctx, key)
		if errors.Is(err, ErrNotFound) {
			rec, err = c.create(key), nil
		}
		if err != nil {
			return err
		}
		if rec.Deleting() {
			return ErrDeleting
		}
		before, _ := rec.Encode()
		if err := change(&rec); err != nil {
			return err
		}
		value, err := rec.Encode()
		if err != nil || string(value) == string(before) {
			return err
		}
		_, err = c.store.Write(ctx, storage.Write{Expected: revision, ID: c.id(key), Value: value})
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot store %s %s: %w", c.kind, key, err)
	}
	return nil
}

// create is the record of a new manifest.
func (c *client) create(key Key) Record {
	now := wall(c.opts.clock.Now())
	uid := hashOf(fmt.Appendf(nil, "%s/%s/%d/%s/%d", c.kind, key, now.UnixNano(), c.opts.boot, c.made.Add(1)))
	return Record{
		Metadata: Metadata{Namespace: key.Namespace, Name: key.Name, UID: uid[:32], Created: now},
		Status:   Status{Phase: PhasePending},
	}
}

// specify gives a record a specification; one of the same content changes nothing.
func specify[S Specification](rec *Record, spec S) error {
	form, hash, err := Canonical(spec)
	if err != nil || hash == rec.Hash {
		return err
	}
	rec.Spec, rec.Hash = form, hash
	rec.Generation++
	return nil
}

// remove stamps the time of deletion, or removes the record if nothing holds it.
func (c *client) remove(ctx context.Context, key Key) error {
	err := c.again(ctx, func() error {
		rec, revision, err := c.get(ctx, key)
		if err != nil || rec.Deleting() {
			return err
		}
		write := storage.Write{Expected: revision, ID: c.id(key), Delete: len(rec.Finalizers) == 0}
		if !write.Delete {
			rec.Deleted, rec.Status.Phase = wall(c.opts.clock.Now()), PhaseDeleting
			if write.Value, err = rec.Encode(); err != nil {
				return err
			}
		}
		_, err = c.store.Write(ctx, write)
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot delete %s %s: %w", c.kind, key, err)
	}
	return nil
}

// again does a read and write until nobody comes between the two.
func (c *client) again(ctx context.Context, try func() error) error {
	err := try()
	for range maxTries {
		if !errors.Is(err, storage.ErrConflict) || ctx.Err() != nil {
			return err
		}
		err = try()
	}
	return err
}
