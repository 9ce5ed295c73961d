package cli

import (
	"runtime/debug"
	"time"
)

// settled is the time after opening the listeners when the start is assumed to be
// complete: migrations have run, templates are parsed and the first background jobs
// are done.
const settled = 2 * time.Second

// releaseStart returns memory that only the start needed to the kernel, after
// settled. Migrations of a first start leave a large heap that the server does not
// need.
func releaseStart() (cancel func()) {
	t := time.AfterFunc(settled, func() {
		debug.FreeOSMemory()
		unmapProgram()
	})
	return func() { t.Stop() }
}
