package serve

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// listenState is TCP_LISTEN as /proc/net/tcp writes it.
const listenState = "0A"

// Holder names the process that listens on the port of addr in this network namespace,
// as "NAME (pid N)", or returns "" when none is found: it may just have ended, or live in
// another pid namespace.
func Holder(addr string) string {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return ""
	}
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		for _, inode := range listeners(table, ap.Port()) {
			if who := socketOwner(inode); who != "" {
				return who
			}
		}
	}
	return ""
}

// listeners returns the inodes of the sockets that listen on port.
func listeners(table string, port uint16) (inodes []string) {
	f, err := os.Open(table)
	if err != nil {
		return nil
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 || fields[3] != listenState {
			continue
		}
		_, hexPort, _ := strings.Cut(fields[1], ":")
		b, err := hex.DecodeString(hexPort)
		if err == nil && len(b) == 2 && uint16(b[0])<<8|uint16(b[1]) == port {
			inodes = append(inodes, fields[9])
		}
	}
	return inodes
}

// socketOwner finds a process that has the socket open.
func socketOwner(inode string) string {
	want := "socket:[" + inode + "]"
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err != nil || target != want {
			continue
		}
		dir := filepath.Dir(filepath.Dir(fd))
		comm, _ := os.ReadFile(filepath.Join(dir, "comm"))
		pid, _ := strconv.Atoi(filepath.Base(dir))
		return fmt.Sprintf("%s (pid %d)", strings.TrimSpace(string(comm)), pid)
	}
	return ""
}
