package program

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/nodeactor/nodeactor/actors/node"
)

// notUnderSystemd refuses to end a node that would be started again at once, on a directory
// that is just being removed.
func notUnderSystemd(c node.Config) error {
	pid := node.Owner(c.DataDir)
	unit, ok := unitOf(pid)
	if !ok {
		return nil
	}
	return fmt.Errorf("cannot reset %s: the node process, pid %d, belongs to the systemd unit %s, which would start it again; first do: systemctl disable --now %s", c.DataDir, pid, unit, unit)
}

// unitOf names the systemd unit that has a process as its main one.
func unitOf(pid int) (name string, ok bool) {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil || !slices.Contains(strings.Split(string(env), "\x00"), fmt.Sprintf("SYSTEMD_EXEC_PID=%d", pid)) {
		return "", false
	}
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return "", false
	}
	for _, part := range strings.FieldsFunc(string(groups), func(r rune) bool { return r == '/' || r == '\n' }) {
		if strings.HasSuffix(part, ".service") {
			name = part
		}
	}
	return cmp.Or(name, "nodeactor.service"), true
}
