package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func plant(t *testing.T, dir string, names ...string) string {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A reset of a directory that no node has made ends before anything is written or removed.
func TestResetRefusesADirectoryThatIsNoNodes(t *testing.T) {
	dir := plant(t, t.TempDir(), "etc/passwd", "ledger.db")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, given := range []string{dir, link} {
		err := Reset(t.Context(), Config{DataDir: given}.WithDefaults(), t.Logf)
		if !errors.Is(err, ErrNotANode) || !strings.Contains(err.Error(), given) {
			t.Fatalf("Reset of %s: %v", given, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 || !isFile(filepath.Join(dir, "etc/passwd")) {
		t.Fatalf("the directory has changed: %v %v", entries, err)
	}
}

// A store somewhere does not make the directory a node's.
func TestResetRefusesAStoreThatNoRestoreMade(t *testing.T) {
	for name, files := range map[string][]string{
		"never locked":  {"store/member/snap/db"},
		"among others":  {lockFile, "store/member/snap/db", "etc/passwd"},
		"another store": {lockFile, "store/goods"},
	} {
		if err := belongsToANode(plant(t, t.TempDir(), files...)); !errors.Is(err, ErrNotANode) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The root is judged alone: no test may call Reset with it.
func TestTheRootIsNoNodes(t *testing.T) {
	link := filepath.Join(t.TempDir(), "root")
	if err := os.Symlink("/", link); err != nil {
		t.Fatal(err)
	}
	for _, given := range []string{"/", "//", "/.", link} {
		if err := belongsToANode(given); !errors.Is(err, ErrNotANode) {
			t.Errorf("%s: %v", given, err)
		}
	}
}

func TestWhatANodeHasMadeIsItsOwn(t *testing.T) {
	for name, files := range map[string][]string{
		"empty":            nil,
		"only locked":      {lockFile},
		"recorded":         {rememberFile, "store/db"},
		"record was lost":  {"ledger.db", "pki/ca.crt", "store/db"},
		"reset cut short":  {rememberFile},
		"record is broken": {rememberFile, lockFile},
		"only restored":    {lockFile, "store/member/snap/db", "pki/ca.crt", "snapshots/x.db"},
	} {
		if err := belongsToANode(plant(t, t.TempDir(), files...)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRemoveDataDirTakesEverything(t *testing.T) {
	dir := plant(t, filepath.Join(t.TempDir(), "d"), rememberFile, lockFile, "store/db", "pki/ca.crt")
	if left, err := removeDataDir(dir); err != nil || left != "" {
		t.Fatal(left, err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("it is still there: %v", err)
	}
}

// What somebody else has put into a node's directory is not the node's to remove.
func TestRemoveDataDirLeavesWhatIsNotTheNodes(t *testing.T) {
	dir := plant(t, t.TempDir(), rememberFile, "store/db", "store.before-restore-20260102T120000Z/db", "ledger.db", "etc/passwd", "storehouse")
	left, err := removeDataDir(dir)
	if err != nil || left != "etc" {
		t.Fatal(left, err)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 2 || !isFile(filepath.Join(dir, "etc/passwd")) || !isFile(filepath.Join(dir, "storehouse")) {
		t.Errorf("left %v", entries)
	}
}

// A node makes its home where nobody else keeps anything.
func TestADirectoryOfSomebodyElseIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		files  []string
		usable bool
	}{
		"empty":                  {nil, true},
		"a file system's root":   {[]string{"lost+found/x"}, true},
		"a node's":               {[]string{rememberFile, "store/db", "notes.txt"}, true},
		"a node's, record lost":  {[]string{"ledger.db", "pki/ca.crt"}, true},
		"prepared with its keys": {[]string{"pki/ca.crt", "pki/ca.key"}, true},
		"with a configuration":   {[]string{"config.yaml"}, true},
		"a home":                 {[]string{".bashrc", "music/song"}, false},
	} {
		dir := plant(t, t.TempDir(), c.files...)
		lock, err := Lock(dir)
		if (err == nil) != c.usable {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			lock.Release()
		} else if entries, _ := os.ReadDir(dir); len(entries) != len(c.files) {
			t.Errorf("%s: something was made: %v", name, entries)
		}
	}
	if _, err := Lock("/"); err == nil || !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("the root of the host: %v", err)
	}
}
