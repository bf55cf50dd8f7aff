package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// compactKey is where API servers agree whose turn it is to forget history; stock ones do it with the same key in the same way.
	compactKey = "compact_rev_key"
	// statusFor is how long a status is believed before it is asked for again.
	statusFor = 5 * time.Second
	// oldestServer is the first release whose progress notifications never run ahead of the changes.
	oldestServer = "3.5.8"
)

// compactions knows whose turn it is.
type compactions struct {
	mu   sync.Mutex
	turn int64 // version of compactKey when this process last looked
}

// Compact implements Engine. When another API server has forgotten history since the last call, this one does not.
func (e *External) Compact(ctx context.Context, revision int64) error {
	if err := e.reachable(ctx); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	e.compactions.mu.Lock()
	defer e.compactions.mu.Unlock()
	mine, err := e.takeTurn(limited, revision)
	if err != nil || !mine {
		return translateRemote(ctx, err)
	}
	if _, err := e.client.Compact(limited, revision); err != nil {
		if err = translateRemote(ctx, err); !errors.Is(err, ErrCompacted) {
			return err
		}
	}
	raise(&e.compactedTo, revision)
	return nil
}

// takeTurn notes what is going to be forgotten, unless somebody else did so since this process last looked.
func (e *External) takeTurn(ctx context.Context, revision int64) (mine bool, err error) {
	c := &e.compactions
	resp, err := e.client.Txn(ctx).If(clientv3.Compare(clientv3.Version(compactKey), "=", c.turn)).
		Then(clientv3.OpPut(compactKey, strconv.FormatInt(revision, 10))).Else(clientv3.OpGet(compactKey)).Commit()
	if err != nil {
		return false, err
	}
	if resp.Succeeded {
		c.turn++
		return true, nil
	}
	c.turn = 0
	if kvs := resp.Responses[0].GetResponseRange().GetKvs(); len(kvs) > 0 {
		c.turn = kvs[0].Version
		if others, err := strconv.ParseInt(string(kvs[0].Value), 10, 64); err == nil {
			raise(&e.compactedTo, others)
		}
	}
	return false, nil
}

// cachedStatus is what the cluster said of itself.
type cachedStatus struct {
	mu     sync.Mutex
	at     time.Time
	asking bool
	status Status
}

// Status implements Engine. It does not wait: it returns what was last heard, and asks again when that is some seconds old.
func (e *External) Status() Status {
	s := &e.status
	s.mu.Lock()
	st, ask := s.status, !s.asking && e.cfg.Clock.Now().Sub(s.at) > statusFor
	s.asking = s.asking || ask
	s.mu.Unlock()
	if ask {
		e.group.Go("status", func(ctx context.Context) error {
			limited, cancel := context.WithTimeout(ctx, callFor)
			defer cancel()
			_ = e.askStatus(limited) // what was heard before stays
			return nil
		}, func(error) { s.asked(e.cfg.Clock.Now()) })
	}
	st.Revision, st.Compacted = e.seen.Load(), e.compactedTo.Load()
	return st
}

func (s *cachedStatus) asked(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking, s.at = false, now
}

// askStatus asks every endpoint what it is; one that answers is enough. It refuses a cluster that is too old.
func (e *External) askStatus(ctx context.Context) error {
	var found *clientv3.StatusResponse
	var last error
	for _, endpoint := range e.cfg.Endpoints {
		resp, err := e.client.Status(ctx, endpoint)
		if err != nil {
			last = translateRemote(ctx, err)
			continue
		}
		if err := e.observe(resp.Header); err != nil {
			return err
		}
		if olderRelease(resp.Version, oldestServer) {
			return fmt.Errorf("%w: %s is an etcd %s, and the oldest that can be followed without a gap is %s", ErrEndpoints, endpoint, resp.Version, oldestServer)
		}
		found = resp
	}
	if found == nil {
		return last
	}
	members := len(e.cfg.Endpoints)
	if list, err := e.client.MemberList(ctx, clientv3.WithSerializable()); err == nil {
		members = len(list.Members)
	}
	e.status.mu.Lock()
	defer e.status.mu.Unlock()
	e.status.status = Status{DBSize: found.DbSize, DBInUse: found.DbSizeInUse, Members: members, Leader: found.Leader != 0, Term: found.RaftTerm}
	return nil
}

// olderRelease compares two versions of the form 1.2.3; what is not of that form is not older.
func olderRelease(version, than string) bool {
	var a, b [3]int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &a[0], &a[1], &a[2]); err != nil {
		return false
	}
	_, _ = fmt.Sscanf(than, "%d.%d.%d", &b[0], &b[1], &b[2])
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

// Snapshot implements Engine. The cluster sends its database with a checksum behind it, which is verified and not handed on.
func (e *External) Snapshot(ctx context.Context, w io.Writer) error {
	if err := e.reachable(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := e.client.SnapshotWithVersion(ctx)
	if err != nil {
		return fmt.Errorf("cannot write snapshot: %w", translateRemote(ctx, err))
	}
	defer resp.Snapshot.Close()
	if err := copyVerified(w, resp.Snapshot); err != nil {
		return fmt.Errorf("cannot write snapshot: %w", err)
	}
	return nil
}

// copyVerified copies all but the last bytes of r, which must be the SHA-256 of what is before them.
func copyVerified(w io.Writer, r io.Reader) error {
	sum := sha256.New()
	both := io.MultiWriter(w, sum)
	var kept []byte // the end of what was read, as it may be the checksum
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		kept = append(kept, buf[:n]...)
		if more := len(kept) - sha256.Size; more > 0 {
			if _, err := both.Write(kept[:more]); err != nil {
				return err
			}
			kept = append(kept[:0], kept[more:]...)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if !bytes.Equal(kept, sum.Sum(nil)) {
		return fmt.Errorf("%w: the checksum of what the cluster sent is not that of its end", ErrDamaged)
	}
	return nil
}
