package cgroupfs

import (
	"errors"
	"os"
	"testing"
)

func TestMountLinesOfVersion1(t *testing.T) {
	h := &Host{dirs: map[string]string{}}
	h.addMount("36 35 0:31 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct")
	h.addMount("37 35 0:32 / /sys/fs/cgroup/memory rw shared:10 - cgroup cgroup rw,memory")
	h.addMount("38 35 0:33 / /elsewhere rw - cgroup cgroup rw,memory")
	h.addMount("39 35 0:34 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw")
	h.addMount("nonsense")
	for controller, dir := range map[string]string{
		"cpuacct": "/sys/fs/cgroup/cpu,cpuacct", "cpu": "/sys/fs/cgroup/cpu,cpuacct", "memory": "/sys/fs/cgroup/memory", "pids": "",
	} {
		if h.dirs[controller] != dir {
			t.Errorf("%s is at %q", controller, h.dirs[controller])
		}
	}
}

func TestReadsTheRootAndMissesTheMissing(t *testing.T) {
	h, err := Find()
	if err != nil {
		t.Skip("no cgroups here: ", err)
	}
	c, err := h.Read("/")
	if err != nil || c.CPUNanos == 0 {
		t.Errorf("the root's counters are %+v, %v", c, err)
	}
	if _, err := h.Read("/no/such/group"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
}
