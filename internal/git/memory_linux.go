package git

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// limitMemory limits the memory that a process and its future children may
// allocate. It limits data only: mapped packs are not counted. Errors are ignored:
// the process may have exited, or have a lower limit already.
func limitMemory(pid int, bytes int64) {
	limit := unix.Rlimit{Cur: uint64(bytes), Max: uint64(bytes)}
	_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &limit, nil)
}

// machineMemory returns the memory available to this process in bytes: that of the
// machine or of its cgroup.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	total := int64(info.Totalram) * int64(info.Unit)
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 { // "max" means no limit
			total = min(total, n)
		}
	}
	return total
}
