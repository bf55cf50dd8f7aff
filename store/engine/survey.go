package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/nodeactor/nodeactor/store/boltcheck"
	"github.com/nodeactor/nodeactor/store/internal/guard"
)

// dbState is what a look at the database has found.
type dbState int

const (
	dbAbsent dbState = iota // there is none, or it has no content
	dbGood
	dbOlder // its last transaction is torn, and the one before is whole
	dbBad
)

var (
	errMissing   = errors.New("it is missing")
	errNoContent = errors.New("it has no content")
)

// survey is what is known of the files of an engine before any of them is opened.
type survey struct {
	db dbState
	// dbErr is what is wrong with it.
	dbErr error
	// applied is the last log entry that the database, or its older state, has taken in, revision the one it has.
	applied  uint64
	revision int64
	log      journal
	// seen is the newest revision that was ever told to anybody, as far as that is known.
	seen int64
}

// measure is what is done about what a survey has found.
type measure int

const (
	asIs   measure = iota // nothing: the engine can be opened
	revert                // take the database's last transaction back; the log has what was in it
	redo                  // make the database anew from the log, which is whole
	prune                 // put damaged segments aside which nobody needs
	anew                  // begin anew: nothing was ever written
	giveUp
)

// plan is a measure with what it is about.
type plan struct {
	do measure
	// upto is the last segment to put aside.
	upto int
	// file is damaged and cannot be mended without loss, and why.
	file string
	why  error
}

// decide says what to do. Whatever is done without asking loses nothing that was acknowledged.
func (s survey) decide(dir string) plan {
	log, db := s.log, DatabaseFile(dir)
	if len(log.segments) == 0 {
		if s.applied == 0 && s.seen == 0 && s.db != dbBad {
			return plan{}
		}
		return plan{do: giveUp, file: logDir(dir), why: errors.New("it has no log")}
	}
	if at := log.damagedAt(); at >= 0 {
		if log.spare(at) {
			if !s.usable() {
				return s.decideDatabase(db) // what is left of the log is no use without it
			}
			return plan{do: prune, upto: at}
		}
		return plan{do: giveUp, file: log.segments[at].path, why: log.segments[at].err}
	}
	if log.last == 0 && log.base == 0 && s.applied == 0 && s.seen == 0 && s.db != dbBad {
		return plan{do: anew, why: errors.New("it has no entry")}
	}
	if end := max(log.last, log.base); end < s.applied {
		return plan{do: giveUp, file: log.end(), why: fmt.Errorf("%w: it ends at entry %d, the database has %d", errBehind, end, s.applied)}
	}
	if !s.usable() && !log.begins() {
		// How far the log goes cannot be told from it alone: it counts from a database, whose revision may be far ahead after a restore.
		return s.decideDatabase(db)
	}
	if most := s.most(); most < s.seen {
		return plan{do: giveUp, file: log.end(), why: fmt.Errorf("%w: with it the store has at most revision %d, and revision %d was acknowledged", errBehind, most, s.seen)}
	}
	return s.decideDatabase(db)
}

// usable reports whether the database, or its older state, is one that the log goes on from.
func (s survey) usable() bool {
	return (s.db == dbGood || s.db == dbOlder) && s.applied >= s.log.base
}

// most is the newest revision that the store can have when the log was read: an entry makes one revision, or none. Without a database that
// is usable it is for a log that begins with the store, and so with a new database.
func (s survey) most() int64 {
	from, revision := s.applied, s.revision
	if !s.usable() {
		from, revision = 0, firstRevision
	}
	return revision + int64(max(s.log.last, s.log.base)-from)
}

// decideDatabase is decide when the log is good as far as it can be told.
func (s survey) decideDatabase(db string) plan {
	switch {
	case s.db == dbGood && s.usable():
		return plan{}
	case s.db == dbOlder && s.usable():
		return plan{do: revert, file: db, why: s.wrong()}
	case s.log.whole():
		return plan{do: redo, file: db, why: s.wrong()}
	case s.db == dbGood:
		return plan{do: giveUp, file: db, why: fmt.Errorf("it is an old copy: it has entry %d, the log begins behind %d", s.applied, s.log.base)}
	}
	return plan{do: giveUp, file: db, why: fmt.Errorf("%w; it cannot be made anew from the log, which begins behind entry %d", s.wrong(), s.log.start())}
}

// wrong is what is wrong with the database.
func (s survey) wrong() error {
	if s.dbErr == nil && s.db == dbAbsent {
		return errMissing
	}
	return s.dbErr
}

// look surveys the directory, its log beside its database. With dbOlder the older state is in a file of its own, olderFile.
func look(dir string, log *slog.Logger) (s survey, err error) {
	var j journal
	read := make(chan error, 1)
	guard.New(context.Background(), "survey", log).Go("reading the log", func(context.Context) (err error) {
		j, err = readJournal(dir)
		return err
	}, func(err error) { read <- err })
	s, err = lookDatabase(dir)
	if failed := <-read; failed != nil {
		return s, failed
	}
	s.log, s.seen = j, readSeen(filepath.Join(dir, seenFile))
	return s, err
}

// lookDatabase surveys the database.
func lookDatabase(dir string) (s survey, err error) {
	path := DatabaseFile(dir)
	switch info, err := os.Stat(path); {
	case errors.Is(err, os.ErrNotExist):
		s.dbErr = errMissing
		return s, nil
	case err == nil && info.Size() == 0:
		s.dbErr = errNoContent
		return s, nil
	}
	err = boltcheck.File(path)
	switch {
	case err == nil:
		s.db = dbGood
		s.applied, s.revision, err = readState(path)
		return s, err
	case !errors.Is(err, boltcheck.ErrCorrupt):
		return s, err
	}
	s.db, s.dbErr = dbBad, err
	if boltcheck.Older(path) != nil {
		return s, nil
	}
	s.applied, s.revision, err = older(dir)
	if errors.Is(err, ErrDamaged) {
		return s, nil
	}
	s.db = dbOlder
	return s, err
}

// older makes a copy of the database without its last transaction, and returns its state.
func older(dir string) (applied uint64, revision int64, err error) {
	path := filepath.Join(dir, olderFile)
	if err := errors.Join(os.RemoveAll(path), copyFile(path, DatabaseFile(dir))); err != nil {
		return 0, 0, fmt.Errorf("cannot copy the database: %w", err)
	}
	if err := boltcheck.Revert(path); err != nil {
		return 0, 0, err
	}
	return readState(path)
}

// readState returns the last log entry that the database at path, which has passed its check, has taken in, and its revision.
func readState(path string) (applied uint64, revision int64, err error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if errors.Is(err, berrors.ErrTimeout) {
		return 0, 0, fmt.Errorf("database %s: %w", path, ErrLocked)
	}
	if err != nil {
		return 0, 0, damage(path, err)
	}
	defer func() { _ = db.Close() }()
	err = db.View(func(tx *bbolt.Tx) error {
		applied, revision = appliedIndex(tx), storedRevision(tx)
		return nil
	})
	return applied, revision, err
}
