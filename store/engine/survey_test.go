package engine

import (
	"errors"
	"strings"
	"testing"
)

// TestP21_WhatIsDoneAboutWhatIsFound is the whole table of decisions about damaged files.
func TestP21_WhatIsDoneAboutWhatIsFound(t *testing.T) {
	bad := errors.New("page 7 is torn")
	good := func(base, first, last uint64) journal {
		return journal{segments: []segment{{path: "d/0.wal"}, {path: "d/1.wal", seq: 1, from: 50}, {path: "d/2.wal", seq: 2, from: 90}}, base: base, first: first, last: last}
	}
	damagedAt := func(i int, j journal) journal { j.segments[i].err = bad; return j }
	late := good(80, 40, 120)
	late.segments[0].seq = 9 // older segments were removed
	// A restore leaves one entry and a mark behind it, and a revision far ahead of the entries.
	const far = 2_000_000_000
	restored := func() journal { return good(1, 1, 20) }
	for _, c := range []struct {
		name string
		s    survey
		do   measure
		file string
	}{
		{"nothing there", survey{}, asIs, ""},
		{"first boot, before the log", survey{db: dbGood}, asIs, ""},
		{"log gone", survey{db: dbGood, applied: 5}, giveUp, "wal"},
		{"everything gone, and once there was something", survey{seen: 9}, giveUp, "wal"},
		{"no log and a torn database", survey{db: dbBad, dbErr: bad}, giveUp, "wal"},
		{"whole", survey{db: dbGood, applied: 100, log: good(80, 1, 120)}, asIs, ""},
		{"first boot, before the first entry", survey{log: good(0, 0, 0)}, anew, ""},
		{"first entry lost", survey{log: good(0, 0, 0), seen: 3}, giveUp, "2.wal"},
		{"log behind what was acknowledged", survey{db: dbGood, applied: 100, revision: 70, seen: 91, log: good(80, 1, 120)}, giveUp, "2.wal"},
		{"log up to what was acknowledged", survey{db: dbGood, applied: 100, revision: 70, seen: 90, log: good(80, 1, 120)}, asIs, ""},
		{"database torn, log has not everything", survey{db: dbBad, dbErr: bad, seen: 122, log: good(0, 1, 120)}, giveUp, "2.wal"},
		{"database torn, log has as much as was acknowledged", survey{db: dbBad, dbErr: bad, seen: 121, log: good(0, 1, 120)}, redo, "db"},
		{"log behind the database", survey{db: dbGood, applied: 121, log: good(80, 1, 120)}, giveUp, "2.wal"},
		{"log without an entry behind the database", survey{db: dbGood, applied: 121, log: good(0, 0, 0)}, giveUp, "2.wal"},
		{"spare segment damaged", survey{db: dbGood, applied: 100, log: damagedAt(0, good(80, 40, 120))}, prune, ""},
		{"needed segment damaged", survey{db: dbGood, applied: 100, log: damagedAt(1, good(80, 90, 120))}, giveUp, "1.wal"},
		{"last segment damaged", survey{db: dbGood, applied: 100, log: damagedAt(2, good(80, 0, 0))}, giveUp, "2.wal"},
		{"last transaction torn, log has it", survey{db: dbOlder, dbErr: bad, applied: 90, log: good(80, 1, 120)}, revert, "db"},
		{"last transaction torn, log begins behind it", survey{db: dbOlder, dbErr: bad, applied: 70, log: late}, giveUp, "db"},
		{"last transaction torn, log has everything", survey{db: dbOlder, dbErr: bad, applied: 70, log: good(0, 1, 120)}, revert, "db"},
		{"database torn, log has everything", survey{db: dbBad, dbErr: bad, log: good(0, 1, 120)}, redo, "db"},
		{"database gone, log has everything", survey{log: good(0, 1, 120)}, redo, "db"},
		{"database torn, log begins later", survey{db: dbBad, dbErr: bad, log: late}, giveUp, "db"},
		{"database gone, log begins later", survey{log: late}, giveUp, "db"},
		{"old copy of the database, log has the rest", survey{db: dbGood, applied: 3, log: good(0, 1, 120)}, asIs, ""},
		{"old copy of the database, log begins later", survey{db: dbGood, applied: 3, log: late}, giveUp, "db"},
		{"old copy of the database, log begins later, more was acknowledged", survey{db: dbGood, applied: 3, revision: 4, seen: far, log: late}, giveUp, "db"},
		{"whole after a restore", survey{db: dbGood, applied: 15, revision: far + 10, seen: far + 12, log: restored()}, asIs, ""},
		{"database torn after a restore", survey{db: dbBad, dbErr: bad, seen: far + 12, log: restored()}, giveUp, "db"},
		{"database gone after a restore", survey{seen: far + 12, log: restored()}, giveUp, "db"},
		{"database empty after a restore", survey{dbErr: errNoContent, seen: far + 12, log: restored()}, giveUp, "db"},
		{"last transaction torn after a restore", survey{db: dbOlder, dbErr: bad, applied: 15, revision: far + 10, seen: far + 12, log: restored()}, revert, "db"},
		{"log shortened after a restore", survey{db: dbGood, applied: 15, revision: far + 10, seen: far + 16, log: restored()}, giveUp, "2.wal"},
		{"database torn and log shortened after a restore", survey{db: dbBad, dbErr: bad, seen: far + 16, log: restored()}, giveUp, "db"},
		{"database torn and log shortened to less than what a restore made", survey{db: dbBad, dbErr: bad, seen: far + 16, log: good(0, 1, 1)}, giveUp, "2.wal"},
		{"database torn and log shortened, no restore", survey{db: dbBad, dbErr: bad, seen: 200, log: good(0, 1, 120)}, giveUp, "2.wal"},
		{"database gone and log shortened, no restore", survey{seen: 200, log: good(0, 1, 120)}, giveUp, "2.wal"},
		{"database torn, log begins later, more was acknowledged", survey{db: dbBad, dbErr: bad, seen: 200, log: late}, giveUp, "db"},
		{"database gone, log begins later, more was acknowledged", survey{seen: 200, log: late}, giveUp, "db"},
		{"database torn and spare segment damaged", survey{db: dbBad, dbErr: bad, log: damagedAt(0, good(80, 40, 120))}, giveUp, "db"},
		{"database gone and spare segment damaged", survey{log: damagedAt(0, good(80, 40, 120))}, giveUp, "db"},
	} {
		p := c.s.decide("dir")
		if p.do != c.do || !strings.HasSuffix(p.file, c.file) {
			t.Errorf("%s: %q about %q, want %q about %q", c.name, p.do, p.file, c.do, c.file)
		}
		if p.do != asIs && p.reason(c.s) == nil {
			t.Errorf("%s: it does not say why", c.name)
		}
		if p.do == giveUp && errors.Is(p.why, errBehind) != (c.file == "2.wal" && c.s.log.damagedAt() < 0) {
			t.Errorf("%s: the reason is not one of %q: %v", c.name, p.file, p.why)
		}
	}
}
