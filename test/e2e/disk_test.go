package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The kernel's requests to hold up a file system's writes and to let them go on.
const (
	freezeRequest = 0xC0045877
	thawRequest   = 0xC0045878
)

// disk is a file system of its own, in a file, that can be held up and filled.
type disk struct {
	t      *testing.T
	mount  string
	root   *os.File
	frozen bool
}

// newHostOn prepares a node whose data directory is a small disk.
func newHostOn(t *testing.T, n, mb int) (*host, *disk) {
	h := newHost(t, n)
	d := &disk{t: t, mount: h.dir}
	image := filepath.Join(t.TempDir(), "image")
	must(t, os.WriteFile(image, nil, 0o600))
	must(t, os.Truncate(image, int64(mb)<<20))
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", image).CombinedOutput(); err != nil {
		t.Skipf("skipped: cannot make a file system in a file: %v %s", err, out)
	}
	if out, err := exec.Command("mount", "-o", "loop", image, h.dir).CombinedOutput(); err != nil {
		t.Skipf("skipped: cannot mount a file system in a file: %v %s", err, out)
	}
	t.Cleanup(func() { d.remove(h) })
	var err error
	d.root, err = os.Open(h.dir)
	must(t, err)
	return h, d
}

// remove ends the node while its disk is there, and then takes the disk away.
func (d *disk) remove(h *host) {
	d.thaw()
	h.end()
	_, _ = h.reset() // removes all but the directory, which is busy
	d.root.Close()
	if err := unix.Unmount(d.mount, unix.MNT_DETACH); err != nil {
		d.t.Errorf("cannot unmount %s: %v", d.mount, err)
	}
}

// freeze holds up every write, as a disk does that does not answer.
func (d *disk) freeze() {
	d.t.Helper()
	if err := unix.IoctlSetInt(int(d.root.Fd()), freezeRequest, 0); err != nil {
		d.t.Fatalf("cannot freeze the disk: %v", err)
	}
	d.frozen = true
}

func (d *disk) thaw() {
	if d.frozen {
		if err := unix.IoctlSetInt(int(d.root.Fd()), thawRequest, 0); err != nil {
			d.t.Errorf("cannot thaw the disk: %v", err)
		}
		d.frozen = false
	}
}

// fillBut uses up all space but for left bytes.
func (d *disk) fillBut(left int64) {
	d.t.Helper()
	var st unix.Statfs_t
	must(d.t, unix.Statfs(d.mount, &st))
	must(d.t, os.WriteFile(d.ballast(), make([]byte, max(int64(st.Bfree)*st.Bsize-left, 0)), 0o600))
}

// fill uses up all space; drain gives it back.
func (d *disk) fill() {
	d.t.Helper()
	f, err := os.OpenFile(d.ballast(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(d.t, err)
	defer f.Close()
	for size := 1 << 20; size >= 1<<10; size /= 4 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			d.t.Fatalf("cannot fill the disk: %v", err)
		}
	}
}

func (d *disk) drain() { must(d.t, os.Remove(d.ballast())) }

func (d *disk) ballast() string { return filepath.Join(d.mount, "ballast") }
