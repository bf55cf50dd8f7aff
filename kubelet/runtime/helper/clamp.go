package helper

import (
	"os"
	"strconv"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/kubelet/runtime/wire"
)

const capSysResource = 24

// mayRaise says whether limits and priorities may go beyond those inherited.
func mayRaise() bool { return statusBits("CapEff:")&(1<<capSysResource) != 0 }

// clampOOMScore keeps want from failing the start: without CAP_SYS_RESOURCE nothing below the own value can be set.
func clampOOMScore(want int) int {
	want = min(max(want, -1000), 1000)
	if mayRaise() {
		return want
	}
	raw, err := os.ReadFile("/proc/self/oom_score_adj")
	own, err2 := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil || err2 != nil {
		return want
	}
	return max(want, own)
}

var rlimitNumbers = map[string]int{
	"RLIMIT_AS": unix.RLIMIT_AS, "RLIMIT_CORE": unix.RLIMIT_CORE, "RLIMIT_CPU": unix.RLIMIT_CPU, "RLIMIT_DATA": unix.RLIMIT_DATA,
	"RLIMIT_FSIZE": unix.RLIMIT_FSIZE, "RLIMIT_MEMLOCK": unix.RLIMIT_MEMLOCK, "RLIMIT_NOFILE": unix.RLIMIT_NOFILE,
	"RLIMIT_NPROC": unix.RLIMIT_NPROC, "RLIMIT_RSS": unix.RLIMIT_RSS, "RLIMIT_STACK": unix.RLIMIT_STACK,
	"RLIMIT_SIGPENDING": unix.RLIMIT_SIGPENDING, "RLIMIT_MSGQUEUE": unix.RLIMIT_MSGQUEUE, "RLIMIT_NICE": unix.RLIMIT_NICE,
	"RLIMIT_RTPRIO": unix.RLIMIT_RTPRIO, "RLIMIT_RTTIME": unix.RLIMIT_RTTIME, "RLIMIT_LOCKS": unix.RLIMIT_LOCKS,
}

// rlimits clamps each limit to what can be set: the inherited hard one where it cannot be raised, and never more open
// files than the kernel allows any process.
func rlimits(in []wire.Rlimit) []specs.POSIXRlimit {
	var out []specs.POSIXRlimit
	for _, r := range in {
		var own unix.Rlimit
		if n, ok := rlimitNumbers[r.Type]; ok && !mayRaise() && unix.Getrlimit(n, &own) == nil {
			r.Hard = min(r.Hard, own.Max)
		}
		if r.Type == "RLIMIT_NOFILE" {
			r.Hard = min(r.Hard, maxOpenFiles())
		}
		out = append(out, specs.POSIXRlimit{Type: r.Type, Soft: min(r.Soft, r.Hard), Hard: r.Hard})
	}
	return out
}

func maxOpenFiles() uint64 {
	raw, err := os.ReadFile("/proc/sys/fs/nr_open")
	n, err2 := strconv.ParseUint(strings.TrimSpace(string(raw)), 10, 64)
	if err != nil || err2 != nil {
		return 1 << 20 // the kernel's default
	}
	return n
}
