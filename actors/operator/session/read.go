package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/cluster/lease"
)

// read feeds all there is, and opens the watch of what comes after.
func (l *life) read(ctx context.Context, beat, notify func()) (storage.Feed, error) {
	kinds := l.of.kinds()
	from, err := l.readManifests(ctx, kinds, beat)
	if err != nil {
		return nil, err
	}
	if err := l.readLeases(ctx, beat); err != nil {
		return nil, err
	}
	feed, err := l.of.store.Watch(from, storage.Filter{Kinds: kinds, Objects: true, Leases: true, KeysOnly: true}, notify)
	if err != nil {
		return nil, fmt.Errorf("cannot watch leases: %w", err)
	}
	if !l.opened(feed) {
		feed.Close()
		return nil, context.Canceled
	}
	return feed, nil
}

// readManifests tells of the manifests there are, and that others are gone. It returns the revision before the first read.
func (l *life) readManifests(ctx context.Context, kinds []string, beat func()) (storage.Revision, error) {
	first := storage.Revision(0)
	there := map[string]struct{}{}
	for i, kind := range kinds {
		events := newEvents(l, beat)
		at, err := l.of.store.ListObjects(ctx, kind, func(o storage.Object) bool {
			there[o.Key()] = struct{}{}
			events.add(lease.Manifest{Name: o.Key()})
			return true
		})
		events.flush()
		if err != nil {
			return 0, fmt.Errorf("cannot list the manifests of %s: %w", kind, err)
		}
		if i == 0 {
			first = at
		}
	}
	for _, manifest := range l.others(there) {
		l.feed(lease.Manifest{Name: manifest, Gone: true})
	}
	return first, nil
}

// others are the manifests that are known and not there.
func (l *life) others(there map[string]struct{}) (gone []string) {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	for manifest := range l.known {
		if _, still := there[manifest]; !still {
			gone = append(gone, manifest)
		}
	}
	slices.Sort(gone)
	return gone
}

// readLeases reads those of the manifests there are. Of one that is made again later, its first write is refused, and then it is known.
func (l *life) readLeases(ctx context.Context, beat func()) error {
	events := newEvents(l, beat)
	_, err := l.of.store.Leases(ctx, func(manifest string, s lease.Stored) bool {
		if l.knows(manifest) {
			events.add(lease.Observed{Manifest: manifest, Stored: s})
		}
		return true
	})
	events.flush()
	if err != nil {
		return fmt.Errorf("cannot list the leases: %w", err)
	}
	return nil
}

func (l *life) knows(manifest string) bool {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	_, known := l.known[manifest]
	return known
}

// changed are the events of what a watch has told.
func changed(changes []storage.Change) []lease.Event {
	events := make([]lease.Event, 0, len(changes))
	for _, c := range changes {
		if c.Manifest != "" {
			events = append(events, lease.Observed{Manifest: c.Manifest, Stored: c.Lease})
			continue
		}
		events = append(events, lease.Manifest{Name: c.Object.Key(), Gone: c.Deleted})
	}
	return events
}

// events gathers some before they are fed.
type events struct {
	to   *life
	beat func()
	some []lease.Event
}

func newEvents(to *life, beat func()) *events { return &events{to: to, beat: beat} }

func (e *events) add(event lease.Event) {
	if e.some = append(e.some, event); len(e.some) >= stepsAtOnce {
		e.flush()
	}
}

func (e *events) flush() {
	e.to.feed(e.some...)
	e.some = e.some[:0]
	e.beat()
}
