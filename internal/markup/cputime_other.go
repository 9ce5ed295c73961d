//go:build !linux

package markup

import "time"

// threadTime is the time that passes: here there is no portable way to ask for
// the processor time of a thread.
func threadTime() time.Duration { return time.Since(started) }

var started = time.Now()
