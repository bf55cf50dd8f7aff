package engine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// segment is one file of the log.
type segment struct {
	path string
	seq  uint64 // its place among the segments, by its name
	from uint64 // the index of its first entry, by its name
	// err is what is wrong with it.
	err error
}

// journal is what one reading of the whole log has found.
type journal struct {
	segments []segment
	// first and last are the indexes of the entries that follow one another without a gap up to the end; 0 = there are none.
	first, last uint64
	// base is the newest entry that need not be read again because the database had it when that was noted.
	base uint64
}

// reader reads a log segment by segment.
type reader struct {
	journal
	bases  []uint64
	commit uint64
	// sum is the checksum at the end of the segment before, 0 when that is not known.
	sum uint32
}

// readJournal reads the log of the engine's directory. What is damaged in it is in the result; the error is about reading as such.
func readJournal(dir string) (journal, error) {
	r := &reader{}
	for _, path := range segments(dir) {
		s := segment{path: path}
		if _, err := fmt.Sscanf(filepath.Base(path), "%016x-%016x.wal", &s.seq, &s.from); err == nil {
			r.segments = append(r.segments, s)
		}
	}
	for i := range r.segments {
		if err := r.segment(i); err != nil {
			return journal{}, err
		}
	}
	for _, base := range r.bases {
		if base <= r.commit {
			r.base = max(r.base, base)
		}
	}
	return r.journal, nil
}

// segment reads one file to its end or to where it is damaged.
func (r *reader) segment(i int) error {
	s := &r.segments[i]
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	if i > 0 && s.seq != r.segments[i-1].seq+1 {
		s.err = errors.New("the one before it is missing")
		return nil
	}
	records, err := r.records(wal.NewDecoder(fileutil.NewFileReader(f)), i)
	torn := errors.Is(err, io.ErrUnexpectedEOF)
	switch {
	case records == 0:
		s.err = errNoContent
	case torn && i < len(r.segments)-1:
		s.err = errors.New("it ends in the middle of a record")
	case err != nil && !torn:
		s.err = err
	}
	if s.err != nil {
		r.sum, r.first, r.last = 0, 0, 0
	}
	return nil
}

// records takes the records of one segment in; the error is nil at its end, io.ErrUnexpectedEOF when the last record was not finished.
func (r *reader) records(d wal.Decoder, i int) (n int, err error) {
	rec := &walpb.Record{}
	for ; ; n++ {
		if err := d.Decode(rec); errors.Is(err, io.EOF) {
			r.sum = d.LastCRC()
			return n, nil
		} else if err != nil {
			return n, err
		}
		if err := r.record(d, rec, i, n); err != nil {
			return n, err
		}
	}
}

func (r *reader) record(d wal.Decoder, rec *walpb.Record, i, n int) error {
	switch rec.GetType() {
	case wal.CrcType:
		if n == 0 && r.sum != 0 && rec.GetCrc() != r.sum {
			return fmt.Errorf("it does not go on where %s ends", filepath.Base(r.segments[i-1].path))
		}
		d.UpdateCRC(rec.GetCrc())
	case wal.EntryType:
		return r.entry(rec.Data)
	case wal.StateType:
		var state raftpb.HardState
		if err := proto.Unmarshal(rec.Data, &state); err != nil {
			return err
		}
		r.commit = state.GetCommit()
	case wal.SnapshotType:
		var snap walpb.Snapshot
		if err := proto.Unmarshal(rec.Data, &snap); err != nil {
			return err
		}
		r.bases = append(r.bases, snap.GetIndex())
	}
	return nil
}

func (r *reader) entry(data []byte) error {
	index, err := indexOf(data)
	if err != nil {
		return err
	}
	if r.last != 0 && index > r.last+1 {
		return fmt.Errorf("entry %d follows on entry %d", index, r.last)
	}
	if r.first == 0 {
		r.first = index
	}
	r.last = index
	return nil
}

// indexOf takes the index out of an encoded raftpb.Entry; what the entry says is left where it is.
func indexOf(entry []byte) (index uint64, err error) {
	const indexField = 3
	for len(entry) > 0 {
		field, kind, n := protowire.ConsumeTag(entry)
		if n < 0 {
			return 0, protowire.ParseError(n)
		}
		entry = entry[n:]
		if field == indexField && kind == protowire.VarintType {
			index, _ = protowire.ConsumeVarint(entry)
		}
		if n = protowire.ConsumeFieldValue(field, kind, entry); n < 0 {
			return 0, protowire.ParseError(n)
		}
		entry = entry[n:]
	}
	return index, nil
}

// damagedAt is the last damaged segment, -1 when all are good.
func (j journal) damagedAt() int {
	for i := len(j.segments) - 1; i >= 0; i-- {
		if j.segments[i].err != nil {
			return i
		}
	}
	return -1
}

// spare reports whether the segments up to i are of no use any more: the database has had what is in them for long.
func (j journal) spare(i int) bool {
	return i+1 < len(j.segments) && j.segments[i+1].from <= j.base
}

// whole reports whether the log goes back to the first entry there ever was.
func (j journal) whole() bool { return j.begins() && j.first == 1 }

// begins reports whether the log begins with the store: with the first entry there ever was, or before it when no entry is left.
func (j journal) begins() bool {
	return j.base == 0 && j.first <= 1 && j.segments[0].seq == 0
}

// start is the entry behind which the log begins: what was before is in the database only.
func (j journal) start() uint64 {
	if j.base == 0 && j.first > 1 {
		return j.first - 1
	}
	return j.base
}

// end is the newest segment's path.
func (j journal) end() string { return j.segments[len(j.segments)-1].path }
