package crash

import (
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const page = 4096

// harm is one way in which a file comes back from a power cut, from a disk that lies, or from a person.
type harm struct {
	name string
	do   func(f *os.File, size int64, rnd *rand.Rand) error
}

var harms = []harm{
	{"truncated", func(f *os.File, size int64, rnd *rand.Rand) error {
		used, err := inUse(f, size)
		if err != nil {
			return err
		}
		return f.Truncate(rnd.Int64N(max(used, 1)))
	}},
	{"last page torn", func(f *os.File, size int64, rnd *rand.Rand) error { return overwrite(f, size, noise(rnd)) }},
	{"emptied", func(f *os.File, _ int64, _ *rand.Rand) error { return f.Truncate(0) }},
	{"last page zeroed", func(f *os.File, size int64, _ *rand.Rand) error { return overwrite(f, size, make([]byte, page)) }},
	{"a bit flipped", flip},
	{"half a page beyond", func(f *os.File, size int64, rnd *rand.Rand) error {
		used, err := inUse(f, size)
		if err == nil {
			_, err = f.WriteAt(noise(rnd), used)
		}
		return err
	}},
	{"first page zeroed", func(f *os.File, size int64, _ *rand.Rand) error {
		_, err := f.WriteAt(make([]byte, min(size, page)), 0)
		return err
	}},
	{"a page of zeros", func(f *os.File, size int64, rnd *rand.Rand) error {
		at, err := somePage(f, size, rnd)
		if err == nil {
			_, err = f.WriteAt(make([]byte, min(page, size-at)), at)
		}
		return err
	}},
	{"a page of noise", func(f *os.File, size int64, rnd *rand.Rand) error {
		at, err := somePage(f, size, rnd)
		if err == nil {
			_, err = f.WriteAt(noise(rnd)[:min(page/2, size-at)], at)
		}
		return err
	}},
	{"zeroed", func(f *os.File, size int64, _ *rand.Rand) error {
		if err := f.Truncate(0); err != nil {
			return err
		}
		return f.Truncate(size)
	}},
}

// The harms that are done to the whole file: an old copy of it in its place, and none at all.
const (
	oldCopy = "an old copy"
	removed = "removed"
)

// harmNames are the names of all harms.
func harmNames() (names []string) {
	for _, h := range harms {
		names = append(names, h.name)
	}
	return append(names, oldCopy, removed)
}

// damage does a harm to a file of dir. An old copy is taken from the directory old; a file that it does not have is not there afterwards.
func damage(t *testing.T, dir, old, file, name string, rnd *rand.Rand) {
	t.Helper()
	path := filepath.Join(dir, file)
	if err := harmTo(path, filepath.Join(old, file), name, rnd); err != nil {
		t.Fatal(err)
	}
}

func harmTo(path, old, name string, rnd *rand.Rand) error {
	if name == removed || name == oldCopy {
		if err := os.Remove(path); err != nil || name == removed {
			return err
		}
		return copyOld(path, old)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(harms, func(h harm) bool { return h.name == name })
	return harms[i].do(f, info.Size(), rnd)
}

func copyOld(path, old string) error {
	b, err := os.ReadFile(old)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}

// flip changes one bit of what is in use.
func flip(f *os.File, size int64, rnd *rand.Rand) error {
	used, err := inUse(f, size)
	if err != nil || used == 0 {
		return err
	}
	b, at := make([]byte, 1), rnd.Int64N(used)
	if _, err := f.ReadAt(b, at); err != nil {
		return err
	}
	b[0] ^= 1 << rnd.IntN(8)
	_, err = f.WriteAt(b, at)
	return err
}

// somePage is where a page begins that is in use.
func somePage(f *os.File, size int64, rnd *rand.Rand) (int64, error) {
	used, err := inUse(f, size)
	if err != nil || used < page {
		return 0, err
	}
	return rnd.Int64N(used/page) * page, nil
}

func noise(rnd *rand.Rand) []byte {
	b := make([]byte, page/2)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

// overwrite replaces the last bytes that are in use.
func overwrite(f *os.File, size int64, b []byte) error {
	used, err := inUse(f, size)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b[:min(int64(len(b)), used)], max(used-int64(len(b)), 0))
	return err
}

// inUse is the size up to the last page that is not all zeros: state files are allocated ahead.
func inUse(f *os.File, size int64) (int64, error) {
	buf := make([]byte, page)
	for used := size; used > 0; {
		at := max(used-page, 0)
		n, err := f.ReadAt(buf[:used-at], at)
		if err != nil && err != io.EOF {
			return 0, err
		}
		if slices.ContainsFunc(buf[:n], func(c byte) bool { return c != 0 }) {
			return used, nil
		}
		used = at
	}
	return 0, nil
}
