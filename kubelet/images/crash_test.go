package images

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/store/ledger"
	"github.com/nodeactor/nodeactor/test/isolate"
	"github.com/nodeactor/nodeactor/test/registry"
	"github.com/nodeactor/nodeactor/test/registry/image"
)

// crashEnv makes this test binary the process that is to be killed: "directory reference reference...".
const crashEnv = "NODEACTOR_IMAGES_CRASH"

const crashRounds = 15

func TestMain(m *testing.M) {
	if spec := os.Getenv(crashEnv); spec != "" {
		churn(strings.Fields(spec))
	}
	if code, started := isolate.Rerun(); started {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// churn pulls, removes and collects for ever.
func churn(args []string) {
	l, err := ledger.Open(filepath.Join(args[0], "ledger.db"))
	check(err)
	s, err := Open(filepath.Join(args[0], "images"), l, nil)
	check(err)
	fmt.Println("open")
	for {
		for _, ref := range args[1:] {
			_, err := s.Pull(context.Background(), ref, PullOptions{})
			check(err)
		}
		check(s.Remove(args[1]))
		_, err := s.GC(context.Background(), func(string) bool { return false })
		check(err)
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

// Killed at any point, the next start finds whole images only and nothing half unpacked.
func TestKilledAtAnyPointImagesAreWhole(t *testing.T) {
	needRoot(t)
	dir, r := t.TempDir(), registry.Start(t)
	base := []image.File{text("base", "x"), {Path: "etc/"}}
	refs := []string{
		r.PushSpec("a:v1", spec(base, manyFiles("a"))),
		r.PushSpec("b:v1", spec(base, manyFiles("b"))),
	}
	for round := range crashRounds {
		killChurn(t, dir, refs)
		l, err := ledger.Open(filepath.Join(dir, "ledger.db"))
		if err != nil {
			t.Fatal(err)
		}
		s := openAt(t, filepath.Join(dir, "images"), l)
		checkWhole(t, s, round)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func checkWhole(t *testing.T, s *Store, round int) {
	t.Helper()
	if leftover, _ := os.ReadDir(s.tmp()); len(leftover) > 0 {
		t.Errorf("round %d: left %v", round, leftover)
	}
	for name := range s.layers {
		if n := strings.Count(tree(t, s.layerDir(name)), "\n"); n != 2 && n != crashFiles {
			t.Errorf("round %d: layer %s has %d files", round, name, n)
		}
	}
	for _, img := range s.List() {
		if len(img.Layers) != 2 || img.Size < crashFiles {
			t.Errorf("round %d: image is %+v", round, img)
		}
	}
}

// crashFiles is how many files the upper layer of an image has.
const crashFiles = 200

func manyFiles(name string) []image.File {
	files := make([]image.File, crashFiles)
	for i := range files {
		files[i] = text(fmt.Sprintf("%s%d", name, i), strings.Repeat(name, 1000))
	}
	return files
}

func killChurn(t *testing.T, dir string, refs []string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), crashEnv+"="+strings.Join(append([]string{dir}, refs...), " "))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 16)); err != nil {
		t.Errorf("the process to kill ended by itself: %v", err)
	}
	time.Sleep(time.Duration(rand.Intn(150_000)) * time.Microsecond)
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	cmd.Wait()
}
