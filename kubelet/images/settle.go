package images

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// bootIDFile tells one run of the kernel from the next.
	bootIDFile = "/proc/sys/kernel/random/boot_id"
	// unsettledFile marks a layer whose files may still be in memory only; it holds the ID of the boot they were written
	// in. While that boot lasts the layer is whole, whatever happens to this process.
	unsettledFile = "unsettled"
)

func readBootID() (string, error) {
	raw, err := os.ReadFile(bootIDFile)
	if err != nil {
		return "", fmt.Errorf("cannot tell this boot from others: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
}

// markUnsettled is called before a layer gets its name.
func (s *Store) markUnsettled(dir string) error {
	return os.WriteFile(filepath.Join(dir, unsettledFile), []byte(s.bootID), 0o600)
}

// survived reports whether a layer is whole: it has reached the disk, or the machine has not stopped since it was written.
func (s *Store) survived(name string) bool {
	boot, err := os.ReadFile(filepath.Join(s.layersDir(), name, unsettledFile))
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil || string(boot) != s.bootID {
		return false
	}
	s.unsettled[name] = true
	return true
}

// settleSoon brings new layers to the disk in the background: waiting for a busy disk would delay the pod that needs the
// image. The caller holds mu.
func (s *Store) settleSoon() {
	if s.settling || len(s.unsettled) == 0 {
		return
	}
	s.settling = true
	s.background.Go("settle", func(ctx context.Context) error {
		for s.clock.Sleep(ctx, s.settleDelay) == nil && s.settle() {
		}
		return nil
	})
}

// settle waits until all layers are on the disk and takes their marks away. It reports whether there are more by now.
func (s *Store) settle() bool {
	names := s.unsettledNames()
	err := s.syncDisk()
	if err != nil {
		s.log.Warn("cannot bring image layers to the disk; they are unpacked again should the machine stop", "err", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		delete(s.unsettled, name)
		if err == nil {
			s.unmark(name)
		}
	}
	s.settling = len(s.unsettled) > 0
	return s.settling
}

// unmark forgets a layer's mark. Should that not reach the disk, the layer is unpacked once more than needed.
func (s *Store) unmark(name string) {
	err := os.Remove(filepath.Join(s.layersDir(), name, unsettledFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("cannot mark image layer as settled", "layer", name, "err", err)
	}
}

func (s *Store) unsettledNames() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.unsettled))
	for name := range s.unsettled {
		names = append(names, name)
	}
	return names
}

func (s *Store) syncDisk() error {
	f, err := os.Open(s.layersDir())
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}
