package cli

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// unmapProgram removes the pages of the executable from the resident memory of the
// process. They are clean and stay in the page cache, and pages in use are mapped
// again one by one. The kernel maps many more pages during the start, because it
// also maps neighboring pages of a page fault. This only saves memory, so errors are
// ignored.
func unmapProgram() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for line := range bytes.Lines(maps) {
		if from, to, ok := programPages(string(line), program); ok {
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, from, to-from, syscall.MADV_DONTNEED)
		}
	}
}

// programPages parses a line of /proc/self/maps. It returns false for pages of other
// files, and for writable pages, whose content would be lost.
func programPages(line, program string) (from, to uintptr, ok bool) {
	field := strings.Fields(line)
	if len(field) < 6 || field[5] != program || strings.Contains(field[1], "w") {
		return 0, 0, false
	}
	first, last, _ := strings.Cut(field[0], "-")
	a, err := strconv.ParseUint(first, 16, 64)
	z, also := strconv.ParseUint(last, 16, 64)
	return uintptr(a), uintptr(z), err == nil && also == nil && a < z
}
