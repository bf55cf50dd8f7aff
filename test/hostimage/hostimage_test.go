package hostimage

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestSeesANewProcess(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("looking at nft tables needs root")
	}
	before, err := Take()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "1234.5")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	during, err := Take()
	if err != nil {
		t.Fatal(err)
	}
	if new := during.Since(before, "sleep 1234.5"); len(new) != 1 || !strings.HasPrefix(new[0], "process ") {
		t.Errorf("new is %q", new)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	after, err := Take()
	if err != nil {
		t.Fatal(err)
	}
	if new := after.Since(before, "sleep 1234.5"); len(new) != 0 {
		t.Errorf("left is %q", new)
	}
}
