package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/nodeactor/nodeactor/supervision"
)

// TestQuotaLevels: what is taken at which use of a quota of 1 GiB.
func TestQuotaLevels(t *testing.T) {
	const g = 1 << 30
	q := newQuota(g)
	grows, frees, deletes := ask{}, ask{frees: true}, ask{frees: true, deletes: true}
	for _, c := range []struct {
		name  string
		u     usage
		w     ask
		taken bool
	}{
		{"below", usage{g, g - 1}, grows, true},
		{"at the quota", usage{g, g}, grows, false},
		{"lease at the quota", usage{g, g}, frees, true},
		{"lease in the reserve", usage{g + g/8, g + g/8 - 1}, frees, true},
		{"lease beyond half of the reserve", usage{g + g/8, g + g/8}, frees, false},
		{"deletion far beyond", usage{2 * g, 2 * g}, deletes, true},
		{"a file of holes", usage{g + g/8, g / 2}, grows, false},
		{"lease in a file of holes", usage{g + g/8, g / 2}, frees, true},
	} {
		if err := q.check(c.u, c.w); (err == nil) != c.taken || err != nil && !errors.Is(err, ErrNoSpace) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if hard := hardQuota(g); hard < g+g/4 {
		t.Errorf("the library's quota is %d", hard)
	}
}

// TestUnwrittenBytesCount: what was let through counts until the database must have it.
func TestUnwrittenBytesCount(t *testing.T) {
	var u unwritten
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	for _, c := range []struct {
		ms, n int
		want  int64
	}{{0, 5, 5}, {400, 1, 6}, {600, 1, 7}, {1200, 1, 2}, {9000, 1, 1}} {
		if got := u.add(at(c.ms), c.n); got != c.want {
			t.Errorf("at %d ms: %d, want %d", c.ms, got, c.want)
		}
	}
}

// TestP23_AlarmOfAnOlderRunEnds: the library's alarm, for which it takes nothing but deletions, ends as soon as there is room.
func TestP23_AlarmOfAnOlderRunEnds(t *testing.T) {
	dir := t.TempDir()
	s := seatAt(t, dir)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	m := s.member.Load()
	if _, err := m.server.Alarm(ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, MemberID: uint64(m.server.MemberID()), Alarm: pb.AlarmType_NOSPACE}); err != nil {
		t.Fatal(err)
	}
	if err := s.Empty(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Fill(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Txn(ctx, Write{Key: "/a", Value: []byte("1")}); !errors.Is(err, ErrNoSpace) {
		t.Fatalf("the alarm is not in force: %v", err)
	}
	if s.Need() != Full {
		t.Errorf("need %d", s.Need())
	}
	if done, err := s.Disarm(ctx); err != nil || !done {
		t.Fatalf("%v, %v", done, err)
	}
	if _, err := s.Txn(ctx, Write{Key: "/a", Value: []byte("1")}); err != nil {
		t.Error(err)
	}
}

// TestP26_CommitsAreTimed: each write enters the histogram, and the library's counts of syncs are found.
func TestP26_CommitsAreTimed(t *testing.T) {
	s := seatAt(t, t.TempDir())
	before := s.Stats()
	if before.Syncs == nil {
		t.Fatal("the library tells nothing of its syncs any more")
	}
	for i := range 10 {
		if _, err := s.Txn(context.Background(), Write{Key: fmt.Sprintf("/a/%d", i), Value: []byte("1")}); err != nil {
			t.Fatal(err)
		}
	}
	after := s.Stats()
	if n := after.Commits.Count - before.Commits.Count; n != 10 || after.Commits.Sum <= before.Commits.Sum || after.Commits.Buckets[64] != after.Commits.Count {
		t.Errorf("%d writes were timed: %+v", n, after.Commits)
	}
	if n := after.Syncs.Log - before.Syncs.Log; n < 10 {
		t.Errorf("%d syncs of the log for 10 writes, one after the other", n)
	}
}

// TestASeatThatWaitsForRoomSaysSo: while no member can be opened for want of room, that is the reason everybody is given.
func TestASeatThatWaitsForRoomSaysSo(t *testing.T) {
	s := NewSeat(Config{Dir: t.TempDir(), NodeName: "n", Clock: supervision.RealClock(), Log: slog.New(slog.DiscardHandler)})
	write := func() error {
		_, err := s.Txn(t.Context(), Write{Key: "/registry/a", Expect: AnyRevision})
		return err
	}
	if err := write(); !errors.Is(err, ErrClosed) || errors.Is(err, ErrNoSpace) {
		t.Errorf("an empty seat: %v", err)
	}
	s.room.waiting.begin(s.cfg.Log, "waits")
	if err := write(); !errors.Is(err, ErrClosed) || !errors.Is(err, ErrNoSpace) || !strings.Contains(err.Error(), s.cfg.Dir) {
		t.Errorf("a seat that waits for room: %v", err)
	}
	if err := s.Refusal(); !errors.Is(err, ErrNoSpace) {
		t.Errorf("the reason for refusing: %v", err)
	}
}
