package cli

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// unmapProgram takes the pages of the program itself out of the memory of the
// process. They are clean and stay in the page cache; those that are used are
// mapped again one by one. The kernel maps many more than that during the start,
// because it maps what is next to a page as well. Without it nothing is lost, so
// errors are ignored.
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

// programPages reads a line of /proc/self/maps. It is false for pages of other
// files and for pages that can be written, whose content would be lost.
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
