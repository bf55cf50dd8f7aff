package operator

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// Waits of the follower.
const (
	// listBeat is the longest silence while all manifests are listed.
	listBeat = 30 * time.Second
	// listAgain is when it is tried again after a failure.
	listAgain = 500 * time.Millisecond
	// beatEvery is after how many objects a listing shows that it goes on.
	beatEvery = 256
)

// Messages of the follower to itself.
type (
	news   struct{}
	relist struct{}
)

// listing is all there is, and the revision from which the changes count.
type listing struct {
	objects  []storage.Object
	revision storage.Revision
}

// follower keeps an index up to date: it lists the store once and follows its changes from there.
type follower struct {
	host *host
	feed storage.Feed
	// told is set while a message says that there is something to take.
	told atomic.Bool
}

func (h *host) followerSpec() supervision.Spec {
	spec := catalog.Row("cache")
	spec.ID = "index"
	spec.Start = func() supervision.Handler { return &follower{host: h} }
	return spec
}

// Receive implements supervision.Handler.
func (f *follower) Receive(ctx supervision.Context, msg any) error {
	switch msg := msg.(type) {
	case supervision.Started, relist:
		f.list(ctx)
	case supervision.JobDone:
		f.follow(ctx, msg)
	case news:
		f.told.Store(false)
		f.take(ctx)
	case supervision.Stopping:
		f.close()
	}
	return nil
}

// list reads everything, in a job: a store may be slow or away.
func (f *follower) list(ctx supervision.Context) {
	f.close()
	ctx.Go(supervision.Job{Name: "list", BeatWithin: listBeat, Run: func(ctx context.Context, beat func()) (any, error) {
		return f.host.listAll(ctx, beat)
	}})
}

// listAll reads all objects that the index is made of. The revision is the lowest: what is read later is not older.
func (h *host) listAll(ctx context.Context, beat func()) (all listing, err error) {
	for i, kind := range h.index.kinds() {
		revision, err := h.store.ListObjects(ctx, kind, func(obj storage.Object) bool {
			if all.objects = append(all.objects, obj); len(all.objects)%beatEvery == 0 {
				beat()
			}
			return ctx.Err() == nil
		})
		if err != nil || ctx.Err() != nil {
			return all, err
		}
		if i == 0 || revision < all.revision {
			all.revision = revision
		}
	}
	return all, ctx.Err()
}

// follow begins to follow the changes behind a listing.
func (f *follower) follow(ctx supervision.Context, job supervision.JobDone) {
	all, ok := job.Value.(listing)
	err := job.Err
	if err == nil && ok {
		f.host.index.replace(all.objects, all.revision)
		err = f.watch(ctx, all.revision)
	}
	if err != nil {
		ctx.Log().Warn("cannot list the manifests, trying again", "kind", f.host.kind, "cause", err)
		ctx.After(listAgain, relist{})
	}
}

func (f *follower) watch(ctx supervision.Context, from storage.Revision) (err error) {
	self := ctx.Self()
	f.feed, err = f.host.store.Watch(from, storage.Filter{Kinds: f.host.index.kinds(), Objects: true}, func() {
		if !f.told.Swap(true) {
			ctx.Send(self, news{})
		}
	})
	return err
}

// take brings the index up to date. A feed that has lost its place is begun anew.
func (f *follower) take(ctx supervision.Context) {
	if f.feed == nil {
		return
	}
	changes, err := f.feed.Take()
	f.host.index.apply(changes)
	if err != nil {
		ctx.Log().Info("the feed of manifests ended, listing again", "kind", f.host.kind, "cause", err)
		f.list(ctx)
	}
}

func (f *follower) close() {
	if f.feed != nil {
		f.feed.Close()
		f.feed = nil
	}
}
