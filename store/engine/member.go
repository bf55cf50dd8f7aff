package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/etcdserver"
	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// Server is the member itself, for a facade that serves its protocol.
func (m *Member) Server() *etcdserver.EtcdServer { return m.server }

// Failed implements Engine.
func (m *Member) Failed() <-chan struct{} { return m.failed.ch }

// Err implements Engine.
func (m *Member) Err() error { return m.failed.get() }

// Fail makes the member serve no more, for a reason that its user has found.
func (m *Member) Fail(err error) { m.failed.set(err) }

// Txn implements Engine.
func (m *Member) Txn(ctx context.Context, w Write) (Result, error) {
	var resp *pb.TxnResponse
	begun, err := m.together(ctx, func(ctx context.Context) (err error) {
		resp, err = m.server.Txn(ctx, txnRequest(w))
		return err
	})
	if err != nil {
		return Result{}, m.outcome(begun, err)
	}
	return resultOf(resp), nil
}

// resultOf reads the answer to a transaction that looks at the key when it did nothing.
func resultOf(resp *pb.TxnResponse) Result {
	res := Result{Revision: resp.Header.GetRevision(), Done: resp.Succeeded}
	if !res.Done {
		if kvs := resp.Responses[0].GetResponseRange().GetKvs(); len(kvs) > 0 {
			kv := fromKV(kvs[0])
			res.Current = &kv
		}
	}
	return res
}

func txnRequest(w Write) *pb.TxnRequest {
	key := []byte(w.Key)
	req := &pb.TxnRequest{
		Success: []*pb.RequestOp{writeOp(key, w)},
		Failure: []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: key}}}},
	}
	if w.Expect != AnyRevision {
		req.Compare = append(req.Compare, compare(key, w.Expect))
	}
	for _, g := range w.Guards {
		req.Compare = append(req.Compare, compare([]byte(g.Key), g.ModRevision))
	}
	return req
}

func writeOp(key []byte, w Write) *pb.RequestOp {
	if w.Delete {
		return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: key}}}
	}
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: key, Value: w.Value, Lease: w.Lease}}}
}

func compare(key []byte, rev int64) *pb.Compare {
	return &pb.Compare{
		Result:      pb.Compare_EQUAL,
		Target:      pb.Compare_MOD,
		Key:         key,
		TargetUnion: &pb.Compare_ModRevision{ModRevision: rev},
	}
}

func fromKV(kv *mvccpb.KeyValue) KV {
	return KV{
		Key:            string(kv.Key),
		Value:          kv.Value,
		CreateRevision: kv.CreateRevision,
		ModRevision:    kv.ModRevision,
		Version:        kv.Version,
		Lease:          kv.Lease,
	}
}

// Range implements Engine. It runs beside the caller, because the database answers nobody while it waits for its disk.
func (m *Member) Range(ctx context.Context, from, to string, revision, limit int64) (Page, error) {
	var page Page
	err := m.beside(ctx, "range", func(ctx context.Context) (err error) {
		page, err = m.read(ctx, from, to, revision, limit)
		return err
	})
	if err != nil {
		return Page{}, m.translate(err)
	}
	return page, nil
}

// beside runs f in a goroutine of its own and returns with it, or earlier when ctx ends or the member fails; f's results are its own then.
func (m *Member) beside(ctx context.Context, what string, f func(context.Context) error) error {
	if err := m.Err(); err != nil {
		return err
	}
	done := make(chan error, 1)
	m.group.Go(what, func(context.Context) error { return f(ctx) }, func(err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-m.failed.ch:
		return m.failed.err
	}
}

func (m *Member) read(ctx context.Context, from, to string, revision, limit int64) (Page, error) {
	return readPage(ctx, m.server.KV(), from, to, revision, limit)
}

func readPage(ctx context.Context, kv mvcc.ReadView, from, to string, revision, limit int64) (Page, error) {
	res, err := kv.Range(ctx, []byte(from), []byte(to), mvcc.RangeOptions{Rev: revision, Limit: limit, WithTotalCount: true})
	if err != nil {
		return Page{}, err
	}
	page := Page{Count: int64(res.Count), Revision: res.Rev, KVs: make([]KV, len(res.KVs))}
	for i, kv := range res.KVs {
		page.KVs[i] = fromKV(kv)
	}
	return page, nil
}

// Barrier implements Engine.
func (m *Member) Barrier(ctx context.Context) (int64, error) {
	var rev atomic.Int64
	_, err := m.together(ctx, func(ctx context.Context) error {
		return m.beside(ctx, "read barrier", func(ctx context.Context) error {
			err := m.readNotify(ctx)
			rev.Store(m.server.KV().Rev())
			return err
		})
	})
	return rev.Load(), m.translate(err)
}

// readNotify asks again, as long as ctx, when the leader changed under the question, as it does at every boot, or when the member's own
// limit of some seconds ran out, as it does on a machine that is very busy. Among several members that limit is the end: this one may hang on
// a leader, or a disk, that answers nobody.
func (m *Member) readNotify(ctx context.Context) error {
	for {
		err := m.server.LinearizableReadNotify(ctx)
		if err == nil || ctx.Err() != nil || !passing(err) || m.settled.Load() && errors.Is(err, etcderrors.ErrTimeout) {
			return err
		}
	}
}

// passing reports whether err is of the moment.
func passing(err error) bool {
	for _, e := range []error{etcderrors.ErrLeaderChanged, etcderrors.ErrTimeout, etcderrors.ErrTimeoutDueToLeaderFail,
		etcderrors.ErrTimeoutDueToConnectionLost, etcderrors.ErrTimeoutWaitAppliedIndex, etcderrors.ErrNoLeader} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Revision implements Engine.
func (m *Member) Revision() int64 { return m.server.KV().Rev() }

// Solo implements Engine. The answer is kept: it is asked for at every read, and nothing outside this package adds a member.
func (m *Member) Solo() bool { return m.solo.Load() }

// Grant implements Engine.
func (m *Member) Grant(ctx context.Context, ttl int64) (int64, error) {
	var resp *pb.LeaseGrantResponse
	_, err := m.together(ctx, func(ctx context.Context) (err error) {
		resp, err = m.server.LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: ttl})
		return err
	})
	if err != nil {
		return 0, m.translate(err)
	}
	return resp.ID, nil
}

// Compact implements Engine. It returns when the forgetting is decided; the space is freed in the background.
func (m *Member) Compact(ctx context.Context, revision int64) error {
	_, err := m.together(ctx, func(ctx context.Context) error {
		_, err := m.server.Compact(ctx, &pb.CompactionRequest{Revision: revision})
		return err
	})
	if err != nil {
		return m.translate(err)
	}
	m.compactedTo.Store(revision)
	return nil
}

// Snapshot implements Engine.
func (m *Member) Snapshot(ctx context.Context, w io.Writer) error {
	m.copies.Add(1)
	defer m.copies.Add(-1)
	snap := m.server.Backend().Snapshot()
	defer func() { _ = snap.Close() }()
	_, err := snap.WriteTo(ctxWriter{ctx, w})
	if err != nil {
		return fmt.Errorf("cannot write snapshot: %w", err)
	}
	return nil
}

// ctxWriter stops a long copy when its context ends.
type ctxWriter struct {
	ctx context.Context
	w   io.Writer
}

func (w ctxWriter) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.w.Write(p)
}

// Status implements Engine.
func (m *Member) Status() Status {
	be := m.server.Backend()
	return Status{
		DBSize:    be.Size(),
		DBInUse:   be.SizeInUse(),
		Compacted: m.compacted(),
		Members:   len(m.server.Cluster().Members()),
		Leader:    m.server.Leader() == m.server.MemberID(),
		Term:      m.server.Term(),
		Alarm:     m.alarm(),
	}
}

// Close implements Engine. When ctx ends first the directory stays locked; Close may be called again.
func (m *Member) Close(ctx context.Context) error {
	m.stop.Do(func() {
		m.dead.Store(m.Err() != nil)
		m.group.Go("engine stop", func(context.Context) error { m.end(); return nil }, func(error) { close(m.stopped) })
		m.failed.set(ErrClosed)
	})
	select {
	case <-m.stopped:
		m.release()
		return nil
	case <-ctx.Done():
		return fmt.Errorf("cannot close engine: %w", ctx.Err())
	}
}

// broken tells whether the member had failed before it was closed: what it has lost it may wait for for ever.
func (m *Member) broken() bool { return m.dead.Load() }

// applied is how far the log has been applied.
func (m *Member) applied() uint64 { return m.server.AppliedIndex() }

// translate maps the library's errors to this package's.
func (m *Member) translate(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, mvcc.ErrCompacted):
		return ErrCompacted
	case errors.Is(err, mvcc.ErrFutureRev):
		return ErrFuture
	case errors.Is(err, etcderrors.ErrRequestTooLarge):
		return ErrTooLarge
	case errors.Is(err, etcderrors.ErrNoSpace):
		return fmt.Errorf("%w: the quota of the store's database is spent; deletions are taken: delete objects, or raise --store-quota", ErrNoSpace)
	}
	if fatal := m.Err(); fatal != nil && !errors.Is(fatal, ErrClosed) {
		return fmt.Errorf("%w: %w", ErrClosed, fatal)
	}
	switch {
	case errors.Is(err, etcderrors.ErrStopped):
		return ErrClosed
	case passing(err), errors.Is(err, etcderrors.ErrTooManyRequests):
		return fmt.Errorf("%w: %w", ErrStalled, err)
	}
	return err
}
