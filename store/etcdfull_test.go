package store_test

import (
	"fmt"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestEtcdClientMeetsTheQuota: a client's writes are bound by the store's quota as the API's are, with the reason, and what makes room is taken.
func TestEtcdClientMeetsTheQuota(t *testing.T) {
	ctx := t.Context()
	s := openWithin(t, t.TempDir(), smallQuota)
	c := serveEtcd(t, s, true).client("admin")
	value := strings.Repeat("x", 1<<20)
	var err error
	n := 0
	for ; err == nil && n < 2*smallQuota>>20; n++ {
		_, err = c.Put(ctx, fmt.Sprint("/registry/pods/a/", n), value)
	}
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "quota") {
		t.Fatalf("after %d MB: %v", n, err)
	}
	t.Logf("refused after %d MB: %v", n, err)
	if _, err := c.Txn(ctx).Then(clientv3.OpPut("/registry/pods/a/x", value)).Commit(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a transaction: %v", err)
	}
	if resp, err := c.Get(ctx, "/registry/pods/a/0"); err != nil || resp.Count != 1 {
		t.Errorf("a read: %v", err)
	}
	if resp, err := c.Delete(ctx, "/registry/pods/a/1"); err != nil || resp.Deleted != 1 {
		t.Errorf("a deletion: %v", err)
	}
	if resp, err := c.Txn(ctx).Then(clientv3.OpDelete("/registry/pods/a/2"), clientv3.OpGet("/registry/pods/a/3")).Commit(); err != nil || !resp.Succeeded {
		t.Errorf("a transaction that deletes: %v", err)
	}
	if _, err := c.Compact(ctx, s.Revision()); err != nil {
		t.Errorf("a compaction: %v", err)
	}
	if alarms, err := c.AlarmList(ctx); err != nil || len(alarms.Alarms) != 0 {
		t.Errorf("alarms: %v, %v", alarms, err)
	}
}
