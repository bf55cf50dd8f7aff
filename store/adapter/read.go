package adapter

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/nodeactor/nodeactor/store/engine"
	"github.com/nodeactor/nodeactor/store/index"
)

// Get implements storage.Interface.
func (s *Store) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	key, err := s.key(key, false)
	if err != nil {
		return err
	}
	if opts.ResourceVersion != "0" {
		if err := s.barrier(ctx); err != nil {
			return err
		}
	} else {
		s.markStale(ctx)
	}
	item, rev := s.backend.Index.Get(key)
	if err := s.notOlderThan(opts.ResourceVersion, rev); err != nil {
		return err
	}
	switch {
	case item == nil && opts.IgnoreNotFound:
		return runtime.SetZeroValue(out)
	case item == nil:
		return storage.NewKeyNotFoundError(key, 0)
	}
	f, err := s.form(ctx, item)
	if err != nil {
		return reportCorrupt(key, err)
	}
	return copyOut(f.obj, out)
}

// GetList implements storage.Interface.
func (s *Store) GetList(ctx context.Context, key string, opts storage.ListOptions, listObj runtime.Object) error {
	prefix, err := s.key(key, opts.Recursive)
	if err != nil {
		return err
	}
	ptr, err := meta.GetItemsPtr(listObj)
	if err != nil {
		return err
	}
	items, err := conversion.EnforcePtr(ptr)
	if err != nil || items.Kind() != reflect.Slice {
		return fmt.Errorf("cannot list into %T: %w", listObj, err)
	}
	rev, from, err := storage.ValidateListOptions(prefix, s.versioner, opts)
	if err != nil {
		return err
	}
	src, err := s.source(ctx, prefix, from, rev, opts)
	if err != nil {
		return err
	}
	l := lister{store: s, opts: opts, items: items, match: newMatcher(&opts.Predicate), errs: newListErrors(s.cfg.GroupResource)}
	if err := l.fill(ctx, src); err != nil {
		return err
	}
	return l.finish(src, prefix, listObj)
}

// source is the ordered keys of one list at one revision.
type source struct {
	snap  index.Snapshot
	items []*index.Item // instead of snap when not nil
	count int64         // of keys in the range, when items is not nil
	dir   string        // prefix in snap; keys equal to it when exact
	from  string
	rev   int64
	exact bool
}

func (src *source) each(f func(*index.Item) bool) {
	switch {
	case src.items != nil:
		for _, i := range src.items {
			if !f(i) {
				return
			}
		}
	case src.exact:
		if i, ok := src.snap.Get(src.dir); ok {
			f(i)
		}
	default:
		src.snap.Ascend(src.dir, src.from, f)
	}
}

func (src *source) size() int64 {
	switch {
	case src.items != nil:
		return src.count
	case src.exact:
		return 1
	}
	return src.snap.Count(src.dir, src.from)
}

// source picks where a list is read from: the index when it has that very state, else the engine's history.
func (s *Store) source(ctx context.Context, prefix, from string, rev int64, opts storage.ListOptions) (*source, error) {
	if opts.ResourceVersion != "0" {
		if err := s.barrier(ctx); err != nil {
			return nil, err
		}
	} else {
		s.markStale(ctx)
	}
	snap := s.backend.Index.Snapshot(prefix)
	src := &source{snap: snap, dir: prefix, from: from, rev: snap.Revision, exact: !opts.Recursive}
	if rev == 0 {
		// A token that continues at the latest state carries no resource version.
		return src, s.notOlderThan(opts.ResourceVersion, snap.Revision)
	}
	if rev > snap.Revision {
		return nil, storage.NewTooLargeResourceVersionError(uint64(rev), uint64(snap.Revision), 0)
	}
	src.rev = rev
	if rev < s.CompactRevision() {
		return src, s.past(ctx, src, opts)
	}
	if rev >= snap.Last {
		return src, nil
	}
	if kept, ok := s.recent.at(rev); ok {
		src.snap = kept
		return src, nil
	}
	return src, s.past(ctx, src, opts)
}

// past fills src from the engine's history.
func (s *Store) past(ctx context.Context, src *source, opts storage.ListOptions) error {
	start, end := src.dir, ""
	if opts.Recursive {
		start, end = max(src.dir, src.from), index.After(src.dir)
	}
	var limit int64
	if opts.Predicate.Limit > 0 && opts.Predicate.Empty() {
		limit = opts.Predicate.Limit + 1 // one more tells that there is more
	}
	page, err := s.backend.Engine.Range(ctx, start, end, src.rev, limit)
	switch {
	case errors.Is(err, engine.ErrCompacted) && len(opts.Predicate.Continue) > 0:
		return expiredContinue(src.from, src.dir)
	case errors.Is(err, engine.ErrCompacted):
		return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	case err != nil:
		return s.fault(err)
	}
	src.count = page.Count
	src.items = make([]*index.Item, len(page.KVs))
	for i, kv := range page.KVs {
		src.items[i] = index.NewItem(kv)
	}
	return nil
}

// expiredContinue tells a client that its list cannot be continued as it was, and how to go on all the same.
func expiredContinue(from, prefix string) error {
	// Revision -1 in a token means: at whatever is newest.
	token, err := storage.EncodeContinue(from, prefix, -1)
	if err != nil {
		return apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
			"You can start a new list without the continue parameter.")
	}
	status := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to retrieve the " +
		"remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, " +
		"modified, or deleted between the time the first chunk was returned and now may show up in the list.")
	status.ErrStatus.ListMeta.Continue = token
	return status
}

// lister collects the items of one list.
type lister struct {
	store *Store
	opts  storage.ListOptions
	items reflect.Value // the list's slice
	match matcher
	errs  listErrors
	last  string // key of the last item looked at
	more  bool   // there are keys behind it
}

// checkEvery is how many items are looked at between two looks at the context.
const checkEvery = 512

func (l *lister) fill(ctx context.Context, src *source) (err error) {
	limit := int(l.opts.Predicate.Limit)
	found := make([]runtime.Object, 0, l.guess(src, limit))
	n := 0
	src.each(func(item *index.Item) bool {
		if limit > 0 && len(found) >= limit {
			l.more = true
			return false
		}
		if n++; n%checkEvery == 0 && ctx.Err() != nil {
			err = storage.NewTimeoutError(item.Key, "request did not complete within requested timeout")
			return false
		}
		l.last = item.Key
		f, ferr := l.store.form(ctx, item)
		if ferr != nil {
			return l.errs.add(l.store.apiKey(item.Key), ferr)
		}
		// Being unable to match an object excludes it, as upstream.
		if ok, merr := l.match.matches(f.obj); merr == nil && ok {
			found = append(found, f.obj)
		}
		return true
	})
	l.set(found)
	if err == nil {
		err = l.errs.aggregate()
	}
	return err
}

func (l *lister) guess(src *source, limit int) int {
	switch {
	case limit > 0:
		return min(limit, checkEvery)
	case src.items != nil:
		return len(src.items)
	case l.match.all():
		return src.snap.Len()
	}
	return 0
}

// set hands the found objects out: the structs are copied, what they point to is shared.
func (l *lister) set(found []runtime.Object) {
	out := reflect.MakeSlice(l.items.Type(), len(found), len(found))
	for i, obj := range found {
		out.Index(i).Set(reflect.ValueOf(obj).Elem())
	}
	l.items.Set(out)
}

func (l *lister) finish(src *source, prefix string, listObj runtime.Object) error {
	pred := l.opts.Predicate
	var count int64
	if l.more && pred.Empty() {
		count = src.size()
	}
	if l.more && src.items == nil {
		l.store.recent.keep(src.snap, src.rev, l.store.CompactRevision())
	}
	token, remaining, err := storage.PrepareContinueToken(l.last, prefix, src.rev, count, l.more, l.opts)
	if err != nil {
		return err
	}
	if err := l.store.versioner.UpdateList(listObj, uint64(src.rev), token, remaining); err != nil {
		return err
	}
	if utilfeature.DefaultFeatureGate.Enabled(features.ShardedListAndWatch) {
		pred.SetShardInfoOnList(listObj)
	}
	return nil
}
