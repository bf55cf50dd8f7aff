package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// publishWithin bounds how long a page may take on a busy machine.
const publishWithin = 30 * time.Second

// TestStandalone runs the program twice: the second run knows of the website from the first, mends what was lost meanwhile, and both stop
// in order when they are asked to.
func TestStandalone(t *testing.T) {
	program := filepath.Join(t.TempDir(), "standalone")
	if out, err := exec.Command("go", "build", "-p", "2", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	folder := filepath.Join(t.TempDir(), "www")
	page := filepath.Join(folder, "shop", "index.html")
	publishes(t, page, program, folder, "shop", "Welcome to my shop")
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	publishes(t, page, program, folder)
}

// publishes runs the program until the page is there, and stops it.
func publishes(t *testing.T, page, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	html := ""
	for end := time.Now().Add(publishWithin); !strings.Contains(html, "Welcome to my shop") && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		text, _ := os.ReadFile(page)
		html = string(text)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil || !strings.Contains(html, "Welcome to my shop") {
		t.Fatalf("the page says %q, and the program ended with %v:\n%s", html, err, said.String())
	}
}
