package registry

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/nodeactor/nodeactor/test/registry/image"
)

// demoPackage is the program of DemoImage.
const demoPackage = "github.com/nodeactor/nodeactor/cmd/demo"

var demoBinary = sync.OnceValues(buildDemo)

// DemoBinary gives the path of the static demo program, built once per test process.
func DemoBinary(t testing.TB) string {
	t.Helper()
	path, err := demoBinary()
	if err != nil {
		t.Fatalf("cannot build the demo program: %v", err)
	}
	return path
}

// buildDemo keeps the binary in a directory all test processes share: it is rebuilt, or found unchanged, by go build.
func buildDemo() (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("nodeactor-test-demo-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	fresh, err := os.CreateTemp(dir, "build-")
	if err != nil {
		return "", err
	}
	fresh.Close()
	defer os.Remove(fresh.Name())
	cmd := exec.Command("go", "build", "-p", "2", "-ldflags", "-s -w", "-o", fresh.Name(), demoPackage)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	// Test processes run side by side: each renames its own complete copy into place.
	path := filepath.Join(dir, "demo")
	return path, os.Rename(fresh.Name(), path)
}

// DemoSpec is the spec of the demo image in one version.
func DemoSpec(t testing.TB, version string) image.Spec {
	t.Helper()
	spec, err := image.Demo(DemoBinary(t), version)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// DemoImage builds the demo image in one version.
func DemoImage(t testing.TB, version string) v1.Image {
	t.Helper()
	return Build(t, DemoSpec(t, version))
}
