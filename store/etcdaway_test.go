package store_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/nodeactor/nodeactor/store"
)

// dial is a connection that repeats nothing by itself.
func (f *facade) dial(name string) *grpc.ClientConn {
	f.t.Helper()
	conn, err := grpc.NewClient(f.addr, grpc.WithTransportCredentials(credentials.NewTLS(
		&tls.Config{Certificates: []tls.Certificate{f.ca.issue(name)}, RootCAs: f.ca.pool()})))
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestEtcdSaysUnavailableWhileTheEngineIsAway: without an engine no call is answered with something empty, and a client's watch goes on with
// the next engine where it was.
func TestEtcdSaysUnavailableWhileTheEngineIsAway(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	s := openStore(t, t.TempDir())
	first := put(t, s, "/registry/pods/a/one", "0")
	f := serveEtcd(t, s, true)
	w := f.client("admin").Watch(ctx, "/registry/pods/", clientv3.WithPrefix(), clientv3.WithRev(first), clientv3.WithPrevKV())
	last, seen := 0, 0
	more := func() { last++; put(t, s, "/registry/pods/a/one", fmt.Sprint(last)) }
	for life := range 3 {
		for range 5 {
			more()
		}
		if life != 1 { // there the watch has seen nothing of it when the engine goes
			seen = sees(ctx, t, w, seen, last)
		}
		if err := s.Rest(ctx); err != nil {
			t.Fatal(err)
		}
		saysUnavailable(ctx, t, f.dial("admin"))
		if err := s.Reopen(ctx); err != nil {
			t.Fatal(err)
		}
		more()
		seen = sees(ctx, t, w, seen, last)
	}
	if got, err := f.client("reader").Get(ctx, "/registry/pods/a/one"); err != nil || string(got.Kvs[0].Value) != fmt.Sprint(last) {
		t.Fatalf("got %v, %v", got, err)
	}
}

// sees reads the values from to upto, each once and in order, and returns the next.
func sees(ctx context.Context, t *testing.T, w clientv3.WatchChan, from, upto int) int {
	t.Helper()
	for want := from; want <= upto; {
		select {
		case resp, ok := <-w:
			if !ok || resp.Err() != nil {
				t.Fatalf("the watch ended: %v", resp.Err())
			}
			for _, ev := range resp.Events {
				if string(ev.Kv.Value) != fmt.Sprint(want) || want > 0 && string(ev.PrevKv.Value) != fmt.Sprint(want-1) {
					t.Fatalf("saw %s after %s, wanted %d", ev.Kv.Value, ev.PrevKv.GetValue(), want)
				}
				want++
			}
		case <-ctx.Done():
			t.Fatalf("%d was not seen", want)
		}
	}
	return upto + 1
}

func saysUnavailable(ctx context.Context, t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	kv := pb.NewKVClient(conn)
	_, gerr := kv.Range(ctx, &pb.RangeRequest{Key: []byte("/registry/"), RangeEnd: []byte("/registry0")})
	_, serr := kv.Range(ctx, &pb.RangeRequest{Key: []byte("/registry/"), RangeEnd: []byte("/registry0"), Serializable: true})
	_, perr := kv.Put(ctx, &pb.PutRequest{Key: []byte("/registry/x")})
	_, terr := pb.NewMaintenanceClient(conn).Status(ctx, &pb.StatusRequest{})
	_, merr := pb.NewClusterClient(conn).MemberList(ctx, &pb.MemberListRequest{})
	for i, err := range []error{gerr, serr, perr, terr, merr, watchError(ctx, conn)} {
		if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "opened anew") {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

func watchError(ctx context.Context, conn *grpc.ClientConn) error {
	stream, err := pb.NewWatchClient(conn).Watch(ctx)
	if err != nil {
		return err
	}
	_ = stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{Key: []byte("/")}}})
	_, err = stream.Recv()
	return err
}

// TestEtcdClientCompacts: what a client has the engine forget, the memory forgets too, and a compaction at the newest revision in the middle of
// writes does not cut off what follows the log.
func TestEtcdClientCompacts(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	s := openStore(t, t.TempDir())
	c := serveEtcd(t, s, true).client("admin")
	first := put(t, s, "/registry/pods/a/one", "0")
	done := make(chan error, 1)
	wctx, stop := context.WithCancel(ctx)
	go func() {
		var err error
		for i := 0; err == nil; i++ {
			_, err = c.Put(wctx, fmt.Sprint("/registry/pods/a/", i%50), strings.Repeat("x", 2000))
		}
		done <- err
	}()
	for range 30 {
		now, err := c.Get(ctx, "/registry/pods/a/one")
		if err != nil {
			t.Fatal(err)
		}
		rev := now.Header.Revision
		if _, err := c.Compact(ctx, rev); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
			t.Fatal(err)
		}
		if got := s.CompactRevision(); got < rev {
			t.Fatalf("compacted to %d, the store says %d", rev, got)
		}
	}
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := s.Subscribe(store.SubscribeOptions{After: first}).Next(ctx); !errors.Is(err, store.ErrCompacted) {
		t.Errorf("a subscription from a revision that was forgotten: %v", err)
	}
	if err := errors.Join(s.Err(), s.Healthy(ctx)); err != nil {
		t.Fatal(err)
	}
	inMemoryAsInTheLog(t, s, c)
}
