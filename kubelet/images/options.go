package images

import (
	"context"
	"log/slog"
	"time"
)

// Limits and paths of the store. Sizes are bytes.
const (
	// NoProgressLimit ends a pull from which nothing arrived for this long.
	NoProgressLimit = time.Minute
	// settleDelay is how long after an install its layers are brought to the disk, when the pod that waited is starting.
	settleDelay = 3 * time.Second
	// maxLayers is what one overlay mount and every common builder allow.
	maxLayers = 127
	// maxLayerEntries bounds the files of one layer, so that a hostile layer cannot eat all inodes.
	maxLayerEntries = 2 << 20
	// maxArchiveMembers bounds the members of an image archive.
	maxArchiveMembers = 4096
	// maxJSONSize bounds a manifest, index or config.
	maxJSONSize = 8 << 20
	// roomCheckSize is how much is unpacked between two looks at the free space.
	roomCheckSize = 8 << 20
	// spaceReserve stays free on the disk: a pull that eats into it is refused.
	spaceReserve = 64 << 20
	// copyBufferSize is the unit in which layers are read, and in which progress is counted.
	copyBufferSize = 128 << 10
)

// Ledger is the part of the node's ledger that the store uses. Put must be durable when it returns.
type Ledger interface {
	Put(bucket, key string, v any) error
	Delete(bucket, key string) error
	Each(bucket string, fn func(key string, raw []byte) error) error
}

// Clock is the part of the process's clock that the store uses.
type Clock interface {
	Now() time.Time
	AfterFunc(d time.Duration, f func()) (stop func() bool)
	Sleep(ctx context.Context, d time.Duration) error
}

// Option changes how Open sets a Store up.
type Option func(*Store)

// WithClock makes the store take its time-outs from c.
func WithClock(c Clock) Option { return func(s *Store) { s.clock = c } }

// WithNoProgressLimit replaces NoProgressLimit.
func WithNoProgressLimit(d time.Duration) Option { return func(s *Store) { s.noProgress = d } }

// PullOptions say how one image is pulled.
type PullOptions struct {
	// Auth holds the credentials of the pod's pull secrets; nil pulls anonymously.
	Auth *Keychain
	// Progress, when set, is called about every 128 KiB and at the end of each layer, one call at a time, from goroutines
	// of the pull. It must not block.
	Progress func(Progress)
}

// Progress is how far a pull has come. Bytes count compressed layer data that has come; layers that were there already
// count as neither done nor total.
type Progress struct {
	Layer, Layers int   // layer being unpacked, from 1, and how many are to be
	Bytes, Total  int64 // compressed bytes read and to read
}

func orDiscard(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}
