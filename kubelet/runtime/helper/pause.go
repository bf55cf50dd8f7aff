package helper

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/kubelet/runtime/shim"
	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
)

// preparePause makes a root with nothing but this binary, so that /proc/1/root of the pod leads nowhere.
func preparePause(r *wire.StartRequest) error {
	root := r.Layout.Rootfs(r.Spec.ID)
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	target := filepath.Join(root, shim.NamePause)
	if err := os.WriteFile(target, nil, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("/proc/self/exe", target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("cannot give the pause container its program: %w", err)
	}
	r.Spec.Args = []string{shim.NamePause}
	r.Spec.CapDrop = []string{"ALL"}
	r.Spec.ReadOnlyRootfs = true
	return nil
}

func procNamespace(pid int, kind string) string {
	if pid == 0 {
		return ""
	}
	return fmt.Sprintf("/proc/%d/ns/%s", pid, kind)
}
