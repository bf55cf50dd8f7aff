package node

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// claimsDir says which data directory each cgroup root of this host belongs to. It is
	// emptied by a reboot, as the cgroups are.
	claimsDir = "/run/nodeactor"
	// claimHashBytes is how much of a path's hash makes a name.
	claimHashBytes = 3
)

// ErrCgroupRoot is returned when the cgroup root belongs to another node's data directory:
// whatever is below the root and not this node's own would be killed.
var ErrCgroupRoot = errors.New("cgroup root in use")

// claim is the record of one cgroup root.
type claim struct {
	Root    string `json:"root"`
	DataDir string `json:"dataDir"`
}

func (c claim) path() string { return filepath.Join(claimsDir, "cgroup-"+hash(c.Root)+".json") }

func hash(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s)))[:2*claimHashBytes] }

// defaultCgroupRoot is /nodeactor for the default directory, and a root of its own for any
// other, so that nodes on one host do not share one unless they are told to.
func defaultCgroupRoot(dataDir string) string {
	if dataDir == DefaultDataDir {
		return DefaultCgroupRoot
	}
	return DefaultCgroupRoot + "-" + hash(dataDir)
}

// claimCgroupRoot records that c's cgroup root is c's data directory's, or refuses it when
// it is, contains or lies in that of another directory that still exists.
func claimCgroupRoot(c Config) error {
	if err := os.MkdirAll(claimsDir, 0o700); err != nil {
		return fmt.Errorf("cannot claim cgroup root %s: %w", c.CgroupRoot, err)
	}
	d, err := os.Open(claimsDir)
	if err != nil {
		return fmt.Errorf("cannot claim cgroup root %s: %w", c.CgroupRoot, err)
	}
	defer d.Close()
	if err := unix.Flock(int(d.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("cannot claim cgroup root %s: %w", c.CgroupRoot, err)
	}
	mine := claim{c.CgroupRoot, c.DataDir}
	if other, taken := conflict(mine); taken {
		return fmt.Errorf("cannot use cgroup root %s: %w by the node of data directory %s; choose another with --cgroup-root", c.CgroupRoot, ErrCgroupRoot, other.DataDir)
	}
	b, err := json.Marshal(mine)
	if err != nil {
		return err
	}
	return os.WriteFile(mine.path(), b, 0o600)
}

// conflict finds a claim of another live data directory that overlaps with mine.
func conflict(mine claim) (claim, bool) {
	files, _ := filepath.Glob(filepath.Join(claimsDir, "cgroup-*.json"))
	for _, f := range files {
		var other claim
		b, err := os.ReadFile(f)
		if err != nil || json.Unmarshal(b, &other) != nil || other.DataDir == mine.DataDir || !overlap(other.Root, mine.Root) {
			continue
		}
		if _, err := os.Stat(filepath.Join(other.DataDir, lockFile)); err == nil {
			return other, true
		}
	}
	return claim{}, false
}

func overlap(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

// releaseCgroupRoot forgets the claim; the directory goes with the last one.
func releaseCgroupRoot(c Config) {
	_ = os.Remove(claim{c.CgroupRoot, c.DataDir}.path())
	_ = os.Remove(claimsDir)
}
