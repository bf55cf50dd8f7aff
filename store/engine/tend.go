package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"google.golang.org/grpc"
)

const (
	// settleEvery is how often it is looked whether a compaction has come to its end.
	settleEvery = 20 * time.Millisecond
	// copyRate is what a disk copies of a database at least, in bytes per second; a rewrite holds writes for no longer than that says, and
	// slack.
	copyRate  = 10 << 20
	copySlack = 5 * time.Second
)

// ErrBusy is returned when the database cannot be rewritten now because it is being copied.
var ErrBusy = errors.New("the database is being copied")

// Pressed tells, on its channel, that the use of the quota calls for maintenance: history should be forgotten now.
func (s *Seat) Pressed() <-chan struct{} { return s.quota.calls }

// Need is how urgent maintenance is.
type Need int

// The needs, from none on.
const (
	AtEase  Need = iota
	Near         // much of the quota is used
	Bloated      // the file is larger than the quota although what it holds need not be
	Full         // writes are refused
)

// Need tells how much room the quota leaves.
func (s *Seat) Need() Need {
	m := s.member.Load()
	if m == nil {
		return AtEase
	}
	u := m.usage()
	switch {
	case u.inUse >= s.quota.bytes || len(m.alarmed()) > 0:
		return Full
	case s.quota.bloated(u):
		return Bloated
	case s.quota.near(u):
		return Near
	}
	return AtEase
}

// Refusal is why a write that needs room would be refused now, or nil.
func (s *Seat) Refusal() error {
	m, err := s.current()
	if err != nil {
		return err
	}
	now := s.cfg.Clock.Now()
	if err := s.room.check(now, 0, false); err != nil {
		return err
	}
	if err := s.quota.check(s.used(m, now), ask{}); err != nil {
		return err
	}
	if !s.hold.on(now) && s.pace.stalled(now, m.applied()) {
		return fmt.Errorf("%w: no write has reached the disk for %s", ErrStalled, s.pace.silence(now).Round(time.Second))
	}
	return nil
}

// Judge notes whether the quota is spent by what is stored, after all history was forgotten that there was.
func (s *Seat) Judge(spent bool) { s.quota.spent.Store(spent) }

// Held tells whether writes wait for a work on the database whose end is known; what is read from memory is not concerned.
func (s *Seat) Held() bool { return s.hold.on(s.cfg.Clock.Now()) }

// Settle returns once everything before revision is forgotten on the disk as well, and the room it took is known to be free.
func (s *Seat) Settle(ctx context.Context, revision int64) error {
	m, err := s.current()
	if err != nil {
		return err
	}
	for {
		done, err := m.forgotten(ctx)
		if err != nil {
			return err
		}
		if done >= revision {
			return m.beside(ctx, "count free pages", m.tally)
		}
		if err := s.cfg.Clock.Sleep(ctx, settleEvery); err != nil {
			return err
		}
	}
}

// Forgotten is the revision before which history is gone from the disk; 0 = none is.
func (s *Seat) Forgotten(ctx context.Context) (int64, error) {
	m, err := s.current()
	if err != nil {
		return 0, err
	}
	return m.forgotten(ctx)
}

// forgotten is the revision up to which history is gone from the disk.
func (m *Member) forgotten(ctx context.Context) (revision int64, err error) {
	found := make(chan int64, 1)
	err = m.beside(ctx, "look for compaction", func(context.Context) error {
		tx := m.server.Backend().ReadTx()
		tx.RLock()
		defer tx.RUnlock()
		revision, _ := mvcc.UnsafeReadFinishedCompact(tx)
		found <- revision
		return nil
	})
	if err != nil {
		return 0, err
	}
	return <-found, nil
}

// tally commits twice without a change: pages freed by one transaction are free from the next on, and are counted at the one after.
func (m *Member) tally(context.Context) error {
	be := m.server.Backend()
	for range 2 {
		tx := be.BatchTx()
		tx.LockOutsideApply()
		if revision, ok := mvcc.UnsafeReadFinishedCompact(tx); ok {
			mvcc.UnsafeSetFinishedCompact(tx, revision)
		}
		tx.Unlock()
		be.ForceCommit()
	}
	return nil
}

// usage is how much of the disk the database takes.
func (m *Member) usage() usage {
	be := m.server.Backend()
	return usage{size: be.Size(), inUse: be.SizeInUse()}
}

// alarmed are the members whose alarm of a spent quota stands, for which the library takes nothing but deletions.
func (m *Member) alarmed() (members []uint64) {
	for _, a := range m.server.Alarms() {
		if a.Alarm == pb.AlarmType_NOSPACE {
			members = append(members, a.MemberID)
		}
	}
	return members
}

// Disarm ends the library's alarm of a spent quota, which an older run may have left, once there is room again. It tells whether it has.
func (s *Seat) Disarm(ctx context.Context) (bool, error) {
	m, err := s.current()
	if err != nil {
		return false, err
	}
	members := m.alarmed()
	if u := m.usage(); len(members) == 0 || u.inUse >= s.quota.bytes || s.quota.bloated(u) {
		return false, nil
	}
	for _, id := range members {
		if _, err := m.server.Alarm(ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE, MemberID: id, Alarm: pb.AlarmType_NOSPACE}); err != nil {
			return false, m.translate(err)
		}
	}
	return true, nil
}

// Defragment rewrites the database without its holes and gives the disk back what that frees. Meanwhile writes, and what is read from
// history, wait; what is read from memory does not. It needs as much room on the disk as the database holds. When ctx ends first the
// work goes on. It returns how many bytes were freed.
func (s *Seat) Defragment(ctx context.Context) (int64, error) {
	m, err := s.current()
	if err != nil {
		return 0, err
	}
	before := m.usage()
	if free, need := freeBytes(s.cfg.Dir), before.inUse+before.inUse/8+reserveBytes; free < need {
		return 0, full(s.cfg.Dir, free, need)
	}
	if m.copies.Load() > 0 {
		return 0, ErrBusy
	}
	if !s.books.rewriting.CompareAndSwap(false, true) {
		return 0, ErrBusy
	}
	begin := s.cfg.Clock.Now()
	s.hold.begin(begin, copySlack+time.Duration(before.inUse/copyRate)*time.Second)
	err = m.beside(ctx, "defragment", func(context.Context) error {
		defer s.resume(m, begin)
		return s.counted(m.rewrite(s.cfg.Dir))
	})
	if err != nil {
		return 0, fmt.Errorf("cannot defragment the store: %w", m.translate(err))
	}
	freed := before.size - m.usage().size
	s.books.reclaimed.Add(freed)
	return freed, nil
}

// counted enters the outcome of a rewrite in the books.
func (s *Seat) counted(err error) error {
	if err != nil {
		s.books.failedDefrags.Add(1)
		return err
	}
	s.books.defrags.Add(1)
	return nil
}

// copyCall is a client's copy of the database.
const copyCall = "/etcdserverpb.Maintenance/Snapshot"

// countCopies lets no rewrite begin while a client copies the database: it would wait for the client, and writes for it.
func (m *Member) countCopies(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if info.FullMethod == copyCall {
		m.copies.Add(1)
		defer m.copies.Add(-1)
	}
	return next(srv, ss)
}

// resume lets writes go on after a hold, whose silence of the log was no stall.
func (s *Seat) resume(m *Member, since time.Time) {
	now := s.cfg.Clock.Now()
	s.books.defragNanos.Add(int64(now.Sub(since)))
	s.books.rewriting.Store(false)
	s.pace.excuse(now, m.applied())
	s.hold.end()
}

// rewrite makes sure that the new file is the one that is found after a loss of power.
func (m *Member) rewrite(dir string) error {
	if err := m.server.Backend().Defrag(); err != nil {
		return err
	}
	return syncDir(filepath.Join(dir, memberDir, "snap"))
}

// sweepRewrites removes what rewrites have left that a crash has ended.
func sweepRewrites(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, memberDir, "snap", "db.tmp*"))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// Stats is what an engine counts. Counts are since the process began.
type Stats struct {
	DBSize, DBInUse, Quota int64
	// Bloated tells that the file is so much larger than the quota that the library will soon take nothing.
	Bloated bool
	// Compacted is the revision to which this process has forgotten history; 0 = it has not.
	Compacted int64
	// Commits says how long writes took, from their beginning until they were durable.
	Commits Latencies
	// Pending writes have begun and not ended, Held ones wait to be begun.
	Pending, Held int64
	// Refused writes by reason.
	Refused map[string]uint64
	// Syncs is nil when the library does not tell.
	Syncs                  *Syncs
	Defrags, FailedDefrags uint64
	DefragTime             time.Duration
	Reclaimed              int64 // bytes given back to the disk
}

// Stats counts.
func (s *Seat) Stats() Stats {
	b := &s.books
	st := Stats{
		Quota: s.quota.bytes, Commits: b.commits.read(), Pending: int64(s.pace.underWay()), Held: b.held.Load(),
		Refused: map[string]uint64{ForQuota: b.forQuota.Load(), ForDisk: b.forDisk.Load(), ForStall: b.forStall.Load()},
		Defrags: b.defrags.Load(), FailedDefrags: b.failedDefrags.Load(), DefragTime: time.Duration(b.defragNanos.Load()), Reclaimed: b.reclaimed.Load(),
	}
	if logSyncs != nil && commits != nil {
		n := syncs()
		st.Syncs = &n
	}
	if m := s.member.Load(); m != nil {
		u := m.usage()
		st.DBSize, st.DBInUse, st.Bloated, st.Compacted = u.size, u.inUse, s.quota.bloated(u), m.compacted()
	}
	return st
}
