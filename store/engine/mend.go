package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	// olderFile is a copy of the database without its last transaction, while it is being made.
	olderFile = "older.db"
	// asideDir holds the damaged files of the engine that were replaced.
	asideDir = "damaged"
	// asideLayout is the time in their names.
	asideLayout = "20060102T150405.000Z"
)

// mend looks at the files of an engine, and repairs what can be repaired without loss. What cannot is ErrDamaged. It is done before the
// library opens them: a panic or a page fault in one of its goroutines could not be caught. Nothing is lost in it but for what the library
// cuts off the log itself, a last record that was not finished and so never acknowledged.
func mend(cfg Config) (survey, error) {
	s, err := look(cfg.Dir, cfg.Log)
	if err != nil {
		return s, err
	}
	p := s.decide(cfg.Dir)
	if p.do == anew && cfg.Peers != nil {
		p = plan{} // it has joined, and waits for what the others have
	}
	if p.do == giveUp {
		return s, errors.Join(damage(p.file, p.why), os.RemoveAll(filepath.Join(cfg.Dir, olderFile)))
	}
	kept, err := p.carryOut(cfg, s)
	if err != nil {
		return s, fmt.Errorf("cannot repair the store: %w", err)
	}
	if p.do != asIs {
		cfg.Log.Warn("the store was repaired, and nothing is lost", "how", p.do, "damaged", p.damaged(s), "why", p.reason(s), "kept", kept)
	}
	return s, nil
}

// carryOut does what was decided, and returns where the damaged files are now.
func (p plan) carryOut(cfg Config, s survey) (kept string, err error) {
	db := DatabaseFile(cfg.Dir)
	switch p.do {
	case revert:
		if kept, err = putAside(cfg, db); err == nil {
			err = os.Rename(filepath.Join(cfg.Dir, olderFile), db)
		}
	case redo:
		kept, err = putAside(cfg, db)
	case anew:
		kept, err = putAside(cfg, filepath.Join(cfg.Dir, memberDir))
	case prune:
		for i := 0; i <= p.upto && err == nil; i++ {
			kept, err = putAside(cfg, s.log.segments[i].path)
		}
	default:
		return "", nil
	}
	if p.do != anew {
		err = errors.Join(err, syncDir(filepath.Dir(db)), syncDir(logDir(cfg.Dir)))
	}
	return kept, errors.Join(err, syncDir(cfg.Dir))
}

// putAside moves a file out of the way, under a name with the time. One that is absent is no matter, and is kept nowhere.
func putAside(cfg Config, path string) (kept string, err error) {
	dir := filepath.Join(cfg.Dir, asideDir)
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return "", err
	}
	kept = filepath.Join(dir, cfg.Clock.Now().UTC().Format(asideLayout)+"-"+filepath.Base(path))
	if err := os.Rename(path, kept); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return "", err
	}
	return kept, nil
}

// String says what is done.
func (m measure) String() string {
	switch m {
	case revert:
		return "the database went back by one transaction, which the log has"
	case redo:
		return "the database is made anew from the log"
	case prune:
		return "old segments of the log that nobody needs were put aside"
	case anew:
		return "it begins anew: nothing was ever written to it"
	case giveUp:
		return "it cannot be repaired without loss"
	}
	return "nothing was to be done"
}

// damaged names the file that was the reason.
func (p plan) damaged(s survey) string {
	switch p.do {
	case prune:
		return s.log.segments[p.upto].path
	case anew:
		return s.log.end()
	}
	return p.file
}

func (p plan) reason(s survey) error {
	if p.do == prune {
		return s.log.segments[p.upto].err
	}
	return p.why
}
