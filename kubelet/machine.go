package kubelet

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// memoryReserve is what of the memory is never promised to pods; ephemeralShare the part of the disk that is.
	memoryReserve  = 100 << 20
	ephemeralShare = 0.9
	memoryFallback = 8 << 30
	percent        = 100
)

// machineFacts are what a node is made of; they do not change while it is up.
type machineFacts struct {
	cpus         int64
	memory, disk int64
	info         v1.NodeSystemInfo
}

func readMachine(dataDir string) machineFacts {
	f := machineFacts{cpus: int64(goruntime.NumCPU()), memory: memInfo("MemTotal"), disk: diskSize(dataDir)}
	if f.memory == 0 {
		f.memory = memoryFallback
	}
	var u unix.Utsname
	_ = unix.Uname(&u)
	f.info = v1.NodeSystemInfo{
		MachineID: readLine("/etc/machine-id"), SystemUUID: readLine("/sys/class/dmi/id/product_uuid"),
		BootID: readLine("/proc/sys/kernel/random/boot_id"), KernelVersion: string(bytes.TrimRight(u.Release[:], "\x00")),
		OSImage: osImage(), OperatingSystem: goruntime.GOOS, Architecture: goruntime.GOARCH,
	}
	if f.info.SystemUUID == "" {
		f.info.SystemUUID = f.info.MachineID
	}
	return f
}

func (f machineFacts) capacity(maxPods int) v1.ResourceList {
	return v1.ResourceList{
		v1.ResourceCPU:              *resource.NewQuantity(f.cpus, resource.DecimalSI),
		v1.ResourceMemory:           *resource.NewQuantity(f.memory, resource.BinarySI),
		v1.ResourceEphemeralStorage: *resource.NewQuantity(f.disk, resource.BinarySI),
		v1.ResourcePods:             *resource.NewQuantity(int64(maxPods), resource.DecimalSI),
	}
}

func (f machineFacts) allocatable(maxPods int) v1.ResourceList {
	l := f.capacity(maxPods)
	l[v1.ResourceMemory] = *resource.NewQuantity(max(f.memory-memoryReserve, 0), resource.BinarySI)
	l[v1.ResourceEphemeralStorage] = *resource.NewQuantity(int64(float64(f.disk)*ephemeralShare), resource.BinarySI)
	return l
}

// quantity is the unit a resource is counted in when it is compared.
func quantity(name v1.ResourceName) func(resource.Quantity) int64 {
	if name == v1.ResourceCPU {
		return func(q resource.Quantity) int64 { return q.MilliValue() }
	}
	return func(q resource.Quantity) int64 { return q.Value() }
}

func readLine(path string) string {
	b, _ := os.ReadFile(path)
	return strings.TrimSpace(string(b))
}

func osImage() string {
	f, err := os.Open("/etc/os-release")
	if err != nil {
		return "Linux"
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if v, ok := strings.CutPrefix(sc.Text(), "PRETTY_NAME="); ok {
			return strings.Trim(v, `"`)
		}
	}
	return "Linux"
}

// memInfo reads one line of /proc/meminfo, in bytes; 0 when it is not there.
func memInfo(field string) int64 {
	b, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, field+":"); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(v), "kB")), 10, 64)
			return n << 10
		}
	}
	return 0
}

// statfs looks at the disk dir is on, or will be on.
func statfs(dir string) (st unix.Statfs_t) {
	for ; unix.Statfs(dir, &st) != nil && dir != "/" && dir != "."; dir = filepath.Dir(dir) {
	}
	return st
}

func diskSize(dir string) int64 {
	st := statfs(dir)
	return int64(st.Blocks) * st.Bsize
}

func diskUsedPercent(dir string) int {
	st := statfs(dir)
	if st.Blocks == 0 {
		return 0
	}
	return int(percent - st.Bavail*percent/st.Blocks)
}

func inodesFreePercent(dir string) int {
	st := statfs(dir)
	if st.Files == 0 {
		return percent
	}
	return int(st.Ffree * percent / st.Files)
}

// pidsFreePercent is the share of process numbers that are free.
func pidsFreePercent() int {
	most, _ := strconv.Atoi(readLine("/proc/sys/kernel/pid_max"))
	fields := strings.Fields(readLine("/proc/loadavg"))
	if most == 0 || len(fields) < 4 {
		return percent
	}
	_, total, _ := strings.Cut(fields[3], "/")
	used, _ := strconv.Atoi(total)
	return (most - used) * percent / most
}
