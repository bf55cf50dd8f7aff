package cache

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
)

// ErrSourceLost is returned when a Stream can no longer be followed without a gap; the reader lists again and opens a new one.
var ErrSourceLost = errors.New("the stream of stored changes was lost")

// ErrSourceDown is returned when the source has nothing to read from, as a store that is being opened again. What the indexes hold
// stays: nothing is taken for deleted because nobody can be asked.
var ErrSourceDown = errors.New("the source of stored objects is down")

// Source is what the cache needs of the store: its index and its gap-free stream of changes.
type Source interface {
	// Revision is the newest revision the index holds; a write is in the index before it is answered. Zero while the source is
	// down; then Get and List find nothing.
	Revision() int64
	// Get reads one stored version; false when there is none.
	Get(key string) (Record, bool)
	// List reads all stored versions below a prefix, ordered by key, and the revision they are from.
	List(prefix string) ([]Record, int64)
	// Follow opens a stream of the changes below a prefix after a revision.
	Follow(prefix string, after int64) Stream
}

// Stream delivers stored changes in revision order. One goroutine uses it.
type Stream interface {
	// Poll takes what there is, without waiting for more: nothing and no error when there is nothing now; ErrSourceLost when
	// there is a gap.
	Poll(ctx context.Context) ([]SourceEvent, error)
	// Signal has a token when Poll may have something new.
	Signal() <-chan struct{}
	// Revision is up to where Poll has delivered everything; it passes revisions that had nothing for this stream.
	Revision() int64
	// Close frees the stream.
	Close()
}

// SourceEvent is one stored change. A deletion has Deleted set; Record then is the last stored version.
type SourceEvent struct {
	Record   Record
	Deleted  bool
	Revision int64
}

// Versioner holds one decoded form of a stored version and decodes it at most once.
type Versioner interface {
	Versioned(decode func([]byte) (runtime.Object, error)) (runtime.Object, error)
}
