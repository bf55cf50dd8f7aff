package snapshot

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/nodeactor/nodeactor/store/engine"
)

const (
	// Dir is the name of the directory of snapshots in a data directory; 0700, its files 0600.
	Dir = "snapshots"
	// sumSize is the length of the checksum behind the database.
	sumSize = sha256.Size
	// sectorSize divides the size of every database; what is left over of a snapshot's size is the checksum.
	sectorSize = 512
	// timeLayout is the time in a name, in UTC.
	timeLayout = "20060102T150405Z"
	// extension ends every name.
	extension = ".db"
	// dirMode keeps the snapshots, and every Secret in them, to their owner.
	dirMode = 0o700
)

// Reasons for saving.
const (
	Manual     = "manual"     // somebody asked for it
	Periodic   = "periodic"   // it was time
	Upgrade    = "upgrade"    // another version of the program is about to open the store
	Membership = "membership" // the members of the store are about to change
)

var (
	// ErrDamaged is returned when a file is not a whole snapshot; the error says what is wrong with it.
	ErrDamaged = errors.New("damaged")
	// ErrNone is returned when a directory holds no snapshot that verifies.
	ErrNone = errors.New("there is no good snapshot")
	// ErrNotEmpty is returned when a store would be restored over another one.
	ErrNotEmpty = errors.New("it holds a store already")
	// ErrNoSpace is returned when the disk has too little space left beside what the store needs.
	ErrNoSpace = engine.ErrNoSpace
	// ErrLocked is returned when a running node has the store.
	ErrLocked = engine.ErrLocked
)

// Info says what is known of one snapshot.
type Info struct {
	Path     string    `json:"path"`
	Time     time.Time `json:"time"`     // of saving, UTC, in whole seconds; by the file's time when the name has none
	Revision int64     `json:"revision"` // of the store when it was saved; 0 = not known from the name alone
	Reason   string    `json:"reason"`   // empty when the name has none
	Size     int64     `json:"size"`     // bytes, with the checksum
}

// Name is the file's name without its directory.
func (i Info) Name() string { return filepath.Base(i.Path) }

var reasonForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// nameOf is the name of a snapshot.
func nameOf(i Info) string {
	return fmt.Sprintf("%s-%d-%s%s", i.Time.UTC().Format(timeLayout), i.Revision, i.Reason, extension)
}

// parseName is the reverse of nameOf.
func parseName(name string) (Info, bool) {
	stem, isDB := strings.CutSuffix(name, extension)
	parts := strings.SplitN(stem, "-", 3)
	if !isDB || len(parts) != 3 || !reasonForm.MatchString(parts[2]) {
		return Info{}, false
	}
	at, err := time.Parse(timeLayout, parts[0])
	if err != nil {
		return Info{}, false
	}
	revision, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || revision < 0 {
		return Info{}, false
	}
	return Info{Path: name, Time: at, Revision: revision, Reason: parts[2]}, true
}

// newestFirst orders by time, then by revision.
func newestFirst(a, b Info) int {
	return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.Revision, a.Revision), cmp.Compare(a.Path, b.Path))
}
