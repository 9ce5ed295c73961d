package app

import "syscall"

// hideProcess prevents other processes of the same user, such as jobs, from
// reading the memory and environment of the server in /proc, and from tracing it.
func hideProcess() error {
	if _, _, code := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0); code != 0 {
		return code
	}
	return nil
}
