package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nodeactor/nodeactor/store/encryption"
	"github.com/nodeactor/nodeactor/store/index"
)

// nameUndecryptable is how many of the objects are named.
const nameUndecryptable = 3

// errNoKeys is returned when something is encrypted and the store was told no keys.
var errNoKeys = errors.New("no keys were given: start with --encryption-provider-config FILE, the file it was written with")

// Undecryptable are stored objects that cannot be decrypted. It is an error that names some of them.
type Undecryptable struct {
	// Keys are sorted.
	Keys   []string
	Reason error // why the first of them cannot be read, and what to do
}

// Error names some of the objects.
func (u *Undecryptable) Error() string {
	names := strings.Join(u.Keys[:min(nameUndecryptable, len(u.Keys))], ", ")
	if more := len(u.Keys) - nameUndecryptable; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%s: %v (%s)", u.Brief(), u.Reason, names)
}

// Brief is Error without names.
func (u *Undecryptable) Brief() string {
	return fmt.Sprintf("%d stored objects cannot be decrypted", len(u.Keys))
}

// Unwrap is the reason.
func (u *Undecryptable) Unwrap() error { return u.Reason }

// Undecryptable tells which objects could not be read when that was looked at last, without those that were removed or written anew since; nil when
// there are none.
func (s *Store) Undecryptable() *Undecryptable {
	found := s.undecryptable.Load()
	if found == nil {
		return nil
	}
	still := &Undecryptable{Reason: found.reason}
	for _, item := range found.items {
		if now, ok := s.Get(item.Key); ok && now.ModRevision == item.ModRevision {
			still.Keys = append(still.Keys, item.Key)
		}
	}
	if len(still.Keys) == 0 {
		s.undecryptable.CompareAndSwap(found, nil)
		return nil
	}
	return still
}

// undecryptables are the objects that could not be read at one moment, in the order of their keys.
type undecryptables struct {
	items  []*Item
	reason error // why the first of them could not
}

// lookForUndecryptable tries to read everything that is encrypted, and says once what cannot be.
func (s *Store) lookForUndecryptable(ctx context.Context) {
	items, _ := s.List(index.Root)
	found := &undecryptables{}
	for _, item := range items {
		if !encryption.Sealed(item.Value) {
			continue
		}
		err := s.opens(ctx, item)
		if ctx.Err() != nil {
			return // what failed may have failed because of that
		}
		if err == nil {
			continue
		}
		if found.reason == nil {
			found.reason = err
		}
		found.items = append(found.items, item)
	}
	if len(found.items) == 0 {
		s.undecryptable.Store(nil)
		return
	}
	s.undecryptable.Store(found)
	if u := s.Undecryptable(); u != nil {
		s.cfg.Log.Error(u.Error())
	}
}

// opens tries to decrypt item, without keeping what comes out.
func (s *Store) opens(ctx context.Context, item *Item) error {
	if s.cfg.Encryption == nil {
		return errNoKeys
	}
	resource, ok := s.resourceOf(index.DirOf(item.Key))
	if !ok {
		return nil // nobody asks for it
	}
	_, _, err := s.cfg.Encryption.TransformerForResource(resource).TransformFromStorage(ctx, item.Value, encryption.Key(item.Key))
	return err
}
