package markup

import (
	"syscall"
	"time"
)

// threadTime is the processor time that the calling thread has used.
func threadTime() time.Duration {
	const thread = 1 // RUSAGE_THREAD
	var u syscall.Rusage
	if err := syscall.Getrusage(thread, &u); err != nil {
		panic(err) // the arguments are right, and nothing else fails
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
