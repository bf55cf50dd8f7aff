package encryption

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
)

// Stored is an object that has to stay readable.
type Stored struct {
	Resource schema.GroupResource
	Key      string
	Value    []byte // as it is stored
}

// nameLost is how many unreadable objects an error names.
const nameLost = 3

// Follow takes changes of the file in until ctx ends, and calls taken after each. objects lists all there are.
func (e *Encryption) Follow(ctx context.Context, objects func() iter.Seq[Stored], taken func()) error {
	for {
		if err := e.cfg.Clock.Sleep(ctx, reloadEvery); err != nil {
			return nil
		}
		if changed, err := e.Reload(ctx, objects); err != nil {
			e.cfg.Log.Error("the changed encryption configuration is not taken: the one before stays in use", "reason", err)
		} else if changed {
			e.cfg.Log.Info("the changed encryption configuration is in use: write objects anew to encrypt them with its first key", "file", e.cfg.File)
			taken()
		}
	}
}

// Reload takes the file in if it has changed. It is refused when it cannot be used or could no longer read an object that the one in use
// can; that is returned once for each content, and looked at again every minute, as objects are written anew.
func (e *Encryption) Reload(ctx context.Context, objects func() iter.Seq[Stored]) (changed bool, err error) {
	old := e.current.Load()
	hash, err := encryptionconfig.GetEncryptionConfigHash(e.cfg.File)
	switch {
	case err != nil:
		hash = "unreadable: " + err.Error()
	case hash == old.hash:
		e.refused.Store(nil)
		e.refusedHash = ""
		return false, nil
	}
	known := hash == e.refusedHash
	if known && e.cfg.Clock.Now().Sub(e.refusedAt) < retryEvery {
		return false, nil
	}
	if err := e.replace(ctx, old, objects); err != nil {
		e.refused.Store(&err)
		e.refusedHash, e.refusedAt = hash, e.cfg.Clock.Now()
		if known {
			err = nil
		}
		return false, err
	}
	e.refused.Store(nil)
	e.refusedHash = ""
	return true, nil
}

// replace puts what the file says now in the place of old.
func (e *Encryption) replace(ctx context.Context, old *set, objects func() iter.Seq[Stored]) error {
	next, err := e.read()
	if err != nil {
		return err
	}
	if err := e.keeps(ctx, old, next, objects()); err != nil {
		next.cancel()
		return err
	}
	e.current.Store(next)
	// What was written with the old keys meanwhile has to be readable, too.
	if err := e.keeps(ctx, old, next, objects()); err != nil {
		e.current.Store(old)
		next.cancel()
		return err
	}
	e.cfg.Clock.AfterFunc(old.grace, old.cancel)
	return nil
}

// keeps proves that next reads what old does.
func (e *Encryption) keeps(ctx context.Context, old, next *set, objects iter.Seq[Stored]) error {
	var lost lost
	for o := range objects {
		if err := next.opens(ctx, o); err != nil && old.opens(ctx, o) == nil {
			lost.add(o.Key, err)
		}
	}
	if lost.count == 0 {
		return ctx.Err()
	}
	return fmt.Errorf("cannot use %s: it could no longer read %s: %w; keep the old key behind the new one until all objects were written anew, "+
		"for example by kubectl get secrets -A -o json | kubectl replace -f -", e.cfg.File, lost.String(), lost.first)
}

func (s *set) opens(ctx context.Context, o Stored) error {
	if ctx.Err() != nil {
		return nil
	}
	_, _, err := s.TransformerForResource(o.Resource).TransformFromStorage(ctx, o.Value, Key(o.Key))
	return err
}

// lost counts unreadable objects and names some.
type lost struct {
	count int
	names []string
	first error
}

func (l *lost) add(key string, err error) {
	if l.count++; l.first == nil {
		l.first = err
	}
	if len(l.names) < nameLost {
		l.names = append(l.names, key)
	}
}

func (l *lost) String() string {
	text := strings.Join(l.names, ", ")
	if more := l.count - len(l.names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
