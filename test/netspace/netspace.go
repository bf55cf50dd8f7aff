// Package netspace puts tests into network namespaces of their own, and keeps the records of a pod network in memory.
package netspace

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Enter puts the test's goroutine, and with it the node under test, into a network namespace of its own. The thread is never given back, so
// the namespace goes with the test. Without root the test is skipped.
func Enter(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatalf("cannot make a network namespace: %v", err)
	}
}

// New pins an empty network namespace, until the test ends, and returns its path.
func New(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "net")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends here
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = unix.Mount("/proc/thread-self/ns/net", path, "", unix.MS_BIND, "")
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatalf("cannot make a network namespace: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(path, unix.MNT_DETACH) })
	return path
}

// Ledger keeps records of one bucket in memory.
type Ledger map[string][]byte

// Put keeps a record.
func (l Ledger) Put(_, key string, v any) error {
	raw, err := json.Marshal(v)
	l[key] = raw
	return err
}

// Delete forgets a record.
func (l Ledger) Delete(_, key string) error {
	delete(l, key)
	return nil
}

// Each visits all records.
func (l Ledger) Each(_ string, fn func(string, []byte) error) error {
	for key, raw := range l {
		if err := fn(key, raw); err != nil {
			return err
		}
	}
	return nil
}
