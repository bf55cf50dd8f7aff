package node

import (
	"os"
	"strings"
	"testing"
)

// TestProgramIsForgotten: the pages of the program are the system's again, but for those that run.
func TestProgramIsForgotten(t *testing.T) {
	before := fileRSS(t)
	if forgetProgram() == 0 {
		t.Fatal("nothing was given back")
	}
	if after := fileRSS(t); after > before*9/10 {
		t.Errorf("%d kB of files are in memory, %d kB were before", after, before)
	}
}

func fileRSS(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "RssFile:"); ok {
			var kib int64
			for _, c := range strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")) {
				kib = 10*kib + int64(c-'0')
			}
			return kib
		}
	}
	t.Fatal("no RssFile")
	return 0
}

func TestOnlyUnwrittenMappingsAreForgotten(t *testing.T) {
	const smaps = `00400000-03a00000 r-xp 00000000 fe:00 123   /opt/the node/bin
Rss:               20480 kB
Private_Dirty:      4096 kB
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd ex mr mw me
03a00000-07000000 r--p 03600000 fe:00 123   /opt/the node/bin
Anonymous:             8 kB
07000000-07200000 rw-p 06c00000 fe:00 123   /opt/the node/bin
Private_Dirty:         0 kB
c000000000-c004000000 rw-p 00000000 00:00 0
Private_Dirty:      4096 kB
7ffe8a5f0000-7ffe8a611000 rw-p 00000000 00:00 0                          [stack]
Swap:                  0 kB
`
	var forgotten []mapping
	all := parseMappings(strings.NewReader(smaps))
	for _, m := range all {
		if m.shared {
			forgotten = append(forgotten, m)
		}
	}
	want := mapping{start: 0x400000, end: 0x3a00000, shared: true, path: "/opt/the node/bin"}
	if len(all) != 5 || len(forgotten) != 1 || forgotten[0] != want {
		t.Errorf("got %+v of %d", forgotten, len(all))
	}
}
