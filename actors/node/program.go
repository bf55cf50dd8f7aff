package node

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mapping is a part of the process's address space.
type mapping struct {
	start, end uintptr
	// shared tells that its pages are those of the file at path: nothing was written to them, and nothing can be.
	shared bool
	path   string
}

// forgetProgram lets go of the pages of the program itself. Most of them were needed once, by the boot or by a load: what runs on comes back
// from the page cache when it is next used. It returns the bytes of address space that it has let go.
func forgetProgram() (bytes uint64) {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return 0
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return 0
	}
	defer f.Close()
	for _, m := range parseMappings(f) {
		if !m.shared || m.path != program {
			continue
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED); errno == 0 {
			bytes += uint64(m.end - m.start)
		}
	}
	return bytes
}

// parseMappings reads the kernel's description of an address space (man 5 proc, smaps).
func parseMappings(smaps io.Reader) (all []mapping) {
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if m, ok := parseMapping(fields); ok {
			all = append(all, m)
			continue
		}
		// Pages that were written to through the mapping are not those of the file any more: relocations, breakpoints.
		if len(all) > 0 && len(fields) >= 2 && fields[1] != "0" && (fields[0] == "Anonymous:" || fields[0] == "Swap:") {
			all[len(all)-1].shared = false
		}
	}
	if lines.Err() != nil {
		return nil
	}
	return all
}

// parseMapping reads the first line of a mapping: range, permissions, offset, device, inode, path.
func parseMapping(fields []string) (m mapping, ok bool) {
	if len(fields) < 5 || strings.HasSuffix(fields[0], ":") {
		return m, false
	}
	from, to, ok := strings.Cut(fields[0], "-")
	start, err1 := strconv.ParseUint(from, 16, 64)
	end, err2 := strconv.ParseUint(to, 16, 64)
	if !ok || err1 != nil || err2 != nil {
		return m, false
	}
	m = mapping{start: uintptr(start), end: uintptr(end), shared: fields[1] == "r-xp" || fields[1] == "r--p"}
	if len(fields) > 5 {
		m.path = strings.Join(fields[5:], " ")
	}
	return m, true
}
