//go:build !linux

package markup

import "time"

// threadTime returns the wall-clock time since the start of the program, because
// there is no portable way to get the processor time of a thread.
func threadTime() time.Duration { return time.Since(started) }

var started = time.Now()
