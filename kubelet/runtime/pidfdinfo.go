package runtime

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// pidfdInfo is the kernel's struct pidfd_info, as long as the part that is read.
type pidfdInfo struct {
	mask, cgroupID                                                              uint64
	pid, tgid, ppid, ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid, exitCode uint32
}

const (
	pidfdInfoExit = 1 << 3
	pidfdGetInfo  = 3<<30 | 64<<16 | 0xFF<<8 | 11 // _IOWR(0xFF, 11, 64 bytes)
)

// pidfdExitStatus asks the kernel (6.15 on) how a process ended that somebody else has reaped.
func pidfdExitStatus(fd int) (int, bool) {
	if fd < 0 {
		return 0, false
	}
	info := pidfdInfo{mask: pidfdInfoExit}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), pidfdGetInfo, uintptr(unsafe.Pointer(&info)))
	if errno != 0 || info.mask&pidfdInfoExit == 0 {
		return 0, false
	}
	return int(info.exitCode), true
}
