package store_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/nodeactor/nodeactor/store"
)

func TestEtcdProtocolIsReadOnly(t *testing.T) {
	ctx := t.Context()
	s := openStore(t, t.TempDir())
	rev := put(t, s, "/registry/configmaps/default/one", "first")
	f := serveEtcd(t, s, false)
	admin := f.client("admin")
	t.Run("reads", func(t *testing.T) {
		resp, err := admin.Get(ctx, "/registry/", clientv3.WithPrefix())
		if err != nil || resp.Count != 1 || string(resp.Kvs[0].Value) != "first" {
			t.Fatalf("got %v, %v", resp, err)
		}
		if st, err := admin.Status(ctx, f.addr); err != nil || st.Header.Revision != rev {
			t.Fatalf("got %v, %v", st, err)
		}
		if _, err := admin.AlarmList(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := admin.Defragment(ctx, f.addr); err != nil {
			t.Fatal(err)
		}
		if h, err := admin.HashKV(ctx, f.addr, 0); err != nil || h.Hash == 0 {
			t.Fatalf("got %v, %v", h, err)
		}
		list, err := admin.MemberList(ctx)
		if err != nil || len(list.Members) != 1 || list.Members[0].ClientURLs[0] != "https://"+f.addr {
			t.Fatalf("got %v, %v", list, err)
		}
		look, err := f.client("reader").Txn(ctx).If(clientv3.Compare(clientv3.Version("/registry/configmaps/default/one"), "=", 1)).
			Then(clientv3.OpGet("/registry/configmaps/default/one")).Commit()
		if err != nil || !look.Succeeded {
			t.Fatalf("a transaction that only reads: %v, %v", look, err)
		}
	})
	t.Run("watches from the past", func(t *testing.T) {
		wctx, stop := context.WithTimeout(ctx, 5*time.Second)
		defer stop()
		w := admin.Watch(wctx, "/registry/", clientv3.WithPrefix(), clientv3.WithRev(rev), clientv3.WithPrevKV())
		if ev := (<-w).Events; len(ev) != 1 || string(ev[0].Kv.Value) != "first" {
			t.Fatalf("got %v", ev)
		}
		put(t, s, "/registry/configmaps/default/one", "second")
		if ev := (<-w).Events; len(ev) != 1 || string(ev[0].Kv.Value) != "second" || string(ev[0].PrevKv.Value) != "first" {
			t.Fatalf("got %v", ev)
		}
	})
	t.Run("snapshots", func(t *testing.T) { readsSnapshot(t, admin) })
	t.Run("refuses writes", func(t *testing.T) { refusesWrites(t, s, admin, "admission") })
	t.Run("refuses what it does not serve", func(t *testing.T) { refusesUnserved(t, f, admin) })
	t.Run("refuses strangers", func(t *testing.T) {
		if _, err := f.client("stranger").Get(ctx, "/registry/", clientv3.WithPrefix()); status.Code(err) != codes.PermissionDenied {
			t.Errorf("got %v", err)
		}
	})
	if err := f.stop(); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ServeEtcd(ctx, l, store.EtcdOptions{}); err == nil || l.Close() == nil {
		t.Fatalf("served without certificates, or kept the port: %v", err)
	}
}

func readsSnapshot(t *testing.T, c *clientv3.Client) {
	body, err := c.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "snapshot")
	var buf bytes.Buffer
	if _, err := io.Copy(&buf, body); err != nil {
		t.Fatal(err)
	}
	// The last 32 bytes are the digest that etcd's tools expect.
	_ = os.WriteFile(path, buf.Bytes()[:buf.Len()-32], 0o600)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
}

// refusesWrites tries every kind of write; each must be refused with a reason that has the word, and change nothing.
func refusesWrites(t *testing.T, s *store.Store, c *clientv3.Client, word string) {
	ctx := t.Context()
	before := s.Status().Revision
	_, perr := c.Put(ctx, "/registry/x", "y")
	_, derr := c.Delete(ctx, "/registry/", clientv3.WithPrefix())
	_, terr := c.Txn(ctx).Then(clientv3.OpPut("/registry/x", "y")).Commit()
	_, nerr := c.Txn(ctx).Else(clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpDelete("/registry/x")}, nil)).Commit()
	_, gerr := c.Grant(ctx, 10)
	_, rerr := c.Revoke(ctx, 1)
	_, kerr := c.KeepAliveOnce(ctx, 1)
	_, cerr := c.Compact(ctx, 1)
	_, aerr := c.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: 1})
	for _, err := range []error{perr, derr, terr, nerr, gerr, rerr, kerr, cerr, aerr} {
		if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), word) {
			t.Errorf("got %v", err)
		}
	}
	if after := s.Status().Revision; after != before {
		t.Errorf("revision moved from %d to %d", before, after)
	}
}

func refusesUnserved(t *testing.T, f *facade, c *clientv3.Client) {
	ctx := t.Context()
	_, aerr := c.MemberAdd(ctx, []string{"http://127.0.0.1:1"})
	_, rerr := c.MemberRemove(ctx, 1)
	_, merr := c.MoveLeader(ctx, 1)
	_, derr := c.Downgrade(ctx, clientv3.DowngradeValidate, "3.6.0")
	_, uerr := c.UserList(ctx)
	_, eerr := c.AuthEnable(ctx)
	for i, err := range []error{aerr, rerr, merr, derr, uerr, eerr} {
		if status.Code(err) != codes.Unimplemented || !strings.Contains(err.Error(), "not served by this store: ") {
			t.Errorf("%d: got %v", i, err)
		}
	}
}
