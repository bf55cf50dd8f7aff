package store_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/nodeactor/nodeactor/store"
)

// transcript is what a client sees, with revisions counted from the begin and leases without their names.
type transcript struct {
	t     *testing.T
	c     *clientv3.Client
	base  int64
	lines []string
}

func (s *transcript) say(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

func (s *transcript) rev(r int64) int64 { return r - s.base }

// get notes the answer to a range.
func (s *transcript) get(what, key string, opts ...clientv3.OpOption) *clientv3.GetResponse {
	resp, err := s.c.Get(s.t.Context(), key, opts...)
	if err != nil {
		s.say("%s: %v", what, err)
		return nil
	}
	s.say("%s: count %d more %v rev %d", what, resp.Count, resp.More, s.rev(resp.Header.Revision))
	for _, kv := range resp.Kvs {
		s.say("  %s=%s create %d mod %d version %d leased %v", kv.Key, kv.Value, s.rev(kv.CreateRevision), s.rev(kv.ModRevision), kv.Version, kv.Lease != 0)
	}
	return resp
}

func (s *transcript) put(key, value string, opts ...clientv3.OpOption) int64 {
	resp, err := s.c.Put(s.t.Context(), key, value, opts...)
	if err != nil {
		s.say("put %s: %v", key, err)
		return 0
	}
	s.say("put %s: rev %d prev %s", key, s.rev(resp.Header.Revision), value0(resp.PrevKv.GetValue()))
	return resp.Header.Revision
}

func value0(b []byte) string { return fmt.Sprintf("%q", b) }

func (s *transcript) del(key string, opts ...clientv3.OpOption) {
	resp, err := s.c.Delete(s.t.Context(), key, opts...)
	if err != nil {
		s.say("del %s: %v", key, err)
		return
	}
	s.say("del %s: %d rev %d", key, resp.Deleted, s.rev(resp.Header.Revision))
	for _, kv := range resp.PrevKvs {
		s.say("  was %s=%s", kv.Key, kv.Value)
	}
}

func (s *transcript) commit(what string, txn clientv3.Txn) {
	resp, err := txn.Commit()
	if err != nil {
		s.say("%s: %v", what, err)
		return
	}
	s.say("%s: %v rev %d", what, resp.Succeeded, s.rev(resp.Header.Revision))
	for _, r := range resp.Responses {
		switch {
		case r.GetResponseRange() != nil:
			s.say("  range %d", r.GetResponseRange().Count)
		case r.GetResponsePut() != nil:
			s.say("  put prev %s", value0(r.GetResponsePut().PrevKv.GetValue()))
		case r.GetResponseDeleteRange() != nil:
			s.say("  deleted %d, %d known", r.GetResponseDeleteRange().Deleted, len(r.GetResponseDeleteRange().PrevKvs))
		case r.GetResponseTxn() != nil:
			s.say("  txn %v", r.GetResponseTxn().Succeeded)
		}
	}
}

// watched notes n events of a watch, or its end.
func (s *transcript) watched(what string, w clientv3.WatchChan, n int) {
	end := time.After(20 * time.Second)
	for n > 0 {
		select {
		case resp, ok := <-w:
			if !ok {
				s.say("%s: closed", what)
				return
			}
			if resp.Canceled || resp.Err() != nil {
				s.say("%s: canceled %v, compacted %d, %v", what, resp.Canceled, s.rev(max(resp.CompactRevision, s.base)), resp.Err())
				return
			}
			if resp.Created || resp.IsProgressNotify() {
				s.say("%s: created %v progress %v", what, resp.Created, resp.IsProgressNotify())
				n--
				continue
			}
			for _, ev := range resp.Events {
				s.say("%s: %s %s size %d at %d created %v, was %d", what, ev.Type, ev.Kv.Key, len(ev.Kv.Value), s.rev(ev.Kv.ModRevision), ev.IsCreate(), len(ev.PrevKv.GetValue()))
				n--
			}
		case <-end:
			s.t.Fatalf("%s: %d events are missing", what, n)
		}
	}
}

// behaviours are what clients of etcd rely on; each writes below a directory of its own.
var behaviours = []struct {
	name string
	run  func(s *transcript, dir string)
}{
	{"range", func(s *transcript, dir string) {
		for i, v := range []string{"b", "c", "a"} {
			s.put(fmt.Sprint(dir, "k", i), v)
		}
		first := s.put(dir+"k0", "z", clientv3.WithPrevKV())
		s.put(dir+"k0", "y")
		s.put(dir+"other", "o")
		s.get("point", dir+"k0")
		s.get("absent", dir+"none")
		s.get("prefix", dir, clientv3.WithPrefix())
		s.get("interval", dir+"k0", clientv3.WithRange(dir+"k2"))
		s.get("from key", dir+"k2", clientv3.WithFromKey(), clientv3.WithLimit(2))
		s.get("keys only", dir, clientv3.WithPrefix(), clientv3.WithKeysOnly())
		s.get("count only", dir, clientv3.WithPrefix(), clientv3.WithCountOnly())
		s.get("limit", dir, clientv3.WithPrefix(), clientv3.WithLimit(2))
		s.get("limit of all", dir, clientv3.WithPrefix(), clientv3.WithLimit(4))
		s.get("serializable", dir, clientv3.WithPrefix(), clientv3.WithSerializable())
		for _, by := range []clientv3.SortTarget{clientv3.SortByKey, clientv3.SortByValue, clientv3.SortByVersion, clientv3.SortByModRevision, clientv3.SortByCreateRevision} {
			s.get(fmt.Sprint("sorted by ", by), dir, clientv3.WithPrefix(), clientv3.WithSort(by, clientv3.SortDescend), clientv3.WithLimit(3))
		}
		s.get("then", dir, clientv3.WithPrefix(), clientv3.WithRev(first))
		s.get("min mod", dir, clientv3.WithPrefix(), clientv3.WithMinModRev(first))
		s.get("max create", dir, clientv3.WithPrefix(), clientv3.WithMaxCreateRev(first-2))
		s.get("future", dir, clientv3.WithPrefix(), clientv3.WithRev(first+1_000_000))
		s.get("empty key", "")
		s.put("", "x")
		s.put(dir+"k9", "", clientv3.WithIgnoreValue())
		s.put(dir+"huge", strings.Repeat("x", 4<<20))
	}},
	{"txn", func(s *transcript, dir string) {
		ctx := s.t.Context()
		rev := s.put(dir+"a", "1")
		s.commit("several operations", s.c.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(dir+"a"), "=", rev), clientv3.Compare(clientv3.Version(dir+"b"), "=", 0)).
			Then(clientv3.OpPut(dir+"a", "2", clientv3.WithPrevKV()), clientv3.OpPut(dir+"b", "1"), clientv3.OpPut(dir+"c", "1"), clientv3.OpGet(dir, clientv3.WithPrefix())))
		s.commit("else", s.c.Txn(ctx).If(clientv3.Compare(clientv3.Value(dir+"a"), ">", "2")).Then(clientv3.OpPut(dir+"a", "3")).Else(clientv3.OpGet(dir, clientv3.WithPrefix())))
		s.commit("nested", s.c.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(dir+"a"), "<", rev+1)).
			Then(clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.Value(dir+"b"), "=", "1")}, []clientv3.Op{clientv3.OpPut(dir+"b", "2")}, nil)))
		s.commit("range compared", s.c.Txn(ctx).If(clientv3.Compare(clientv3.Version(dir).WithPrefix(), ">", 0)).Then(clientv3.OpGet(dir+"a")))
		s.commit("lease compared", s.c.Txn(ctx).If(clientv3.Compare(clientv3.LeaseValue(dir+"a"), "=", 0)).Then(clientv3.OpGet(dir+"a")))
		s.commit("twice the same key", s.c.Txn(ctx).Then(clientv3.OpPut(dir+"a", "x"), clientv3.OpPut(dir+"a", "y")))
		s.commit("too many operations", s.c.Txn(ctx).Then(slices.Repeat([]clientv3.Op{clientv3.OpGet(dir + "a")}, 129)...))
		s.commit("delete", s.c.Txn(ctx).Then(clientv3.OpDelete(dir+"b", clientv3.WithPrevKV()), clientv3.OpDelete(dir+"none"), clientv3.OpPut(dir+"d", "1")))
		s.get("after", dir, clientv3.WithPrefix())
		s.del(dir, clientv3.WithPrefix(), clientv3.WithPrevKV())
		s.del(dir, clientv3.WithPrefix())
	}},
	{"watch", func(s *transcript, dir string) {
		ctx, cancel := context.WithCancel(s.t.Context())
		defer cancel()
		first := s.put(dir+"a", "1")
		s.put(dir+"a", "22")
		s.del(dir + "a")
		s.del(dir + "a")
		history := s.c.Watch(ctx, dir, clientv3.WithPrefix(), clientv3.WithRev(first), clientv3.WithPrevKV())
		s.watched("history", history, 3)
		s.put(dir+"a", "4444")
		s.watched("live", history, 1)
		created := s.c.Watch(ctx, dir+"a", clientv3.WithCreatedNotify())
		s.watched("created", created, 1)
		puts := s.c.Watch(ctx, dir, clientv3.WithPrefix(), clientv3.WithRev(first), clientv3.WithFilterDelete())
		s.watched("puts alone", puts, 3)
		deletions := s.c.Watch(ctx, dir, clientv3.WithPrefix(), clientv3.WithRev(first), clientv3.WithFilterPut())
		s.watched("deletions alone", deletions, 1)
		part := s.c.Watch(ctx, dir+"b", clientv3.WithRange(dir+"d"), clientv3.WithRev(first))
		for _, k := range []string{"a", "b", "c", "d"} {
			s.put(dir+k, "x")
		}
		s.watched("interval", part, 2)
		quiet, stop := context.WithCancel(ctx)
		asked := s.c.Watch(clientv3.WithRequireLeader(quiet), dir+"none", clientv3.WithCreatedNotify())
		s.watched("asked", asked, 1)
		if err := s.c.RequestProgress(clientv3.WithRequireLeader(quiet)); err != nil {
			s.t.Fatal(err)
		}
		s.watched("asked", asked, 1)
		stop()
		s.watched("cancelled", asked, 1)
		big := s.c.Watch(ctx, dir+"big", clientv3.WithPrefix(), clientv3.WithFragment())
		for i := range 5 {
			s.put(fmt.Sprint(dir, "big", i), strings.Repeat("x", 1<<20))
		}
		s.watched("fragments", big, 5)
		again := s.c.Watch(ctx, dir+"big", clientv3.WithPrefix(), clientv3.WithFragment(), clientv3.WithRev(first))
		s.watched("fragments of history", again, 5)
	}},
	{"lease", func(s *transcript, dir string) {
		ctx := s.t.Context()
		w := s.c.Watch(ctx, dir, clientv3.WithPrefix(), clientv3.WithPrevKV())
		long, err := s.c.Grant(ctx, 600)
		if err != nil {
			s.t.Fatal(err)
		}
		s.say("granted %d", long.TTL)
		s.put(dir+"a", "1", clientv3.WithLease(long.ID))
		s.put(dir+"b", "1", clientv3.WithLease(long.ID))
		s.put(dir+"b", "2") // no longer
		s.get("leased", dir, clientv3.WithPrefix())
		ttl, err := s.c.TimeToLive(ctx, long.ID, clientv3.WithAttachedKeys())
		s.say("time to live %d of %d, keys %s, %v", ttl.TTL/10, ttl.GrantedTTL, ttl.Keys, err)
		alive, err := s.c.KeepAliveOnce(ctx, long.ID)
		s.say("kept alive %d, %v", alive.TTL, err)
		_, err = s.c.Grant(ctx, -1)
		s.say("negative: %v", err)
		_, err = s.c.KeepAliveOnce(ctx, 4711)
		s.say("unknown: %v", err)
		s.put(dir+"c", "1", clientv3.WithLease(4711))
		_, err = s.c.Revoke(ctx, long.ID)
		s.say("revoked: %v", err)
		s.watched("revoked", w, 4)
		_, err = s.c.Revoke(ctx, long.ID)
		s.say("revoked again: %v", err)
		short, err := s.c.Grant(ctx, 1)
		if err != nil {
			s.t.Fatal(err)
		}
		s.put(dir+"short", "1", clientv3.WithLease(short.ID))
		s.put(dir+"short2", "1", clientv3.WithLease(short.ID))
		s.watched("expired", w, 4)
		s.get("expired", dir, clientv3.WithPrefix())
		ttl, err = s.c.TimeToLive(ctx, short.ID)
		s.say("time to live %d, %v", ttl.TTL, err)
	}},
	{"compaction", func(s *transcript, dir string) {
		ctx := s.t.Context()
		first := s.put(dir+"a", "1")
		last := s.put(dir+"a", "2")
		_, err := s.c.Compact(ctx, last)
		s.say("compact: %v", err)
		_, err = s.c.Compact(ctx, last)
		s.say("compact again: %v", err)
		_, err = s.c.Compact(ctx, last+1000)
		s.say("compact the future: %v", err)
		s.get("forgotten", dir+"a", clientv3.WithRev(first))
		s.get("kept", dir+"a", clientv3.WithRev(last))
		s.watched("forgotten", s.c.Watch(ctx, dir, clientv3.WithPrefix(), clientv3.WithRev(first)), 1)
		s.watched("kept", s.c.Watch(ctx, dir, clientv3.WithPrefix(), clientv3.WithRev(last)), 1)
		_, err = s.c.Compact(ctx, s.put(dir+"b", "1"), clientv3.WithCompactPhysical())
		s.say("physically: %v", err)
	}},
}

// behave writes the transcript of one behaviour.
func behave(t *testing.T, c *clientv3.Client, i int) []string {
	start, err := c.Get(t.Context(), "/")
	if err != nil {
		t.Fatal(err)
	}
	s := &transcript{t: t, c: c, base: start.Header.Revision}
	behaviours[i].run(s, "/registry/"+behaviours[i].name+"/")
	return s.lines
}

// realEtcd is a member of the library as its own program configures it.
func realEtcd(t *testing.T) *clientv3.Client {
	cfg := embed.NewConfig()
	cfg.Dir, cfg.LogLevel, cfg.LogOutputs = t.TempDir(), "fatal", []string{"/dev/null"}
	listen := func() []url.URL {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return []url.URL{{Scheme: "http", Host: l.Addr().String()}}
	}
	cfg.ListenClientUrls, cfg.ListenPeerUrls = listen(), listen()
	cfg.AdvertiseClientUrls, cfg.AdvertisePeerUrls = cfg.ListenClientUrls, cfg.ListenPeerUrls
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	<-e.Server.ReadyNotify()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{cfg.ListenClientUrls[0].Host}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestEtcdClientSeesEtcd: the official client cannot tell the store from an etcd by the answers to ranges, transactions, watches, leases and
// compactions; and what it writes is in the store's memory, in its events, and nowhere twice.
func TestEtcdClientSeesEtcd(t *testing.T) {
	s := openStore(t, t.TempDir())
	mine, real := serveEtcd(t, s, true).client("admin"), realEtcd(t)
	sub := s.Subscribe(store.SubscribeOptions{After: s.Revision()})
	defer sub.Close()
	for i, b := range behaviours {
		t.Run(b.name, func(t *testing.T) {
			want, got := behave(t, real, i), behave(t, mine, i)
			for n := range max(len(want), len(got)) {
				if n >= len(want) || n >= len(got) || want[n] != got[n] {
					t.Fatalf("line %d: etcd says\n%s\nthe store says\n%s", n, strings.Join(want[max(0, n-3):min(n+1, len(want))], "\n"), strings.Join(got[max(0, n-3):min(n+1, len(got))], "\n"))
				}
			}
			t.Logf("%d answers are the same", len(want))
		})
	}
	inMemoryAsInTheLog(t, s, mine)
	eventsLedThere(t, s, sub)
}

// eventsLedThere replays the events of a subscription that began with the empty store, and compares what comes out with what is stored.
func eventsLedThere(t *testing.T, s *store.Store, sub *store.Subscription) {
	t.Helper()
	replayed := map[string]int64{}
	for sub.Revision() < s.Revision() {
		events, err := sub.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			replayed[e.Item.Key] = e.Revision
			if e.Type == store.Deleted {
				delete(replayed, e.Item.Key)
			}
		}
	}
	items, _ := s.List("/registry/")
	for _, i := range items {
		if replayed[i.Key] != i.ModRevision {
			t.Errorf("%s is stored at %d, the events say %d", i.Key, i.ModRevision, replayed[i.Key])
		}
	}
	if len(items) != len(replayed) {
		t.Errorf("the events lead to %d objects, %d are stored", len(replayed), len(items))
	}
}

// inMemoryAsInTheLog compares the index with what the engine answers.
func inMemoryAsInTheLog(t *testing.T, s *store.Store, c *clientv3.Client) {
	resp, err := c.Get(t.Context(), "/registry/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.WaitApplied(t.Context(), resp.Header.Revision); err != nil {
		t.Fatal(err)
	}
	items, rev := s.List("/registry/")
	if rev != resp.Header.Revision || len(items) != len(resp.Kvs) || len(items) == 0 {
		t.Fatalf("%d items at %d, the engine has %d at %d", len(items), rev, len(resp.Kvs), resp.Header.Revision)
	}
	for i, kv := range resp.Kvs {
		if it := items[i]; it.Key != string(kv.Key) || string(it.Value) != string(kv.Value) || it.ModRevision != kv.ModRevision || it.CreateRevision != kv.CreateRevision || it.Lease != kv.Lease {
			t.Fatalf("%s at %d, the engine has %s at %d", it.Key, it.ModRevision, kv.Key, kv.ModRevision)
		}
	}
}
