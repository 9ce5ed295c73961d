package cli

import (
	"runtime/debug"
	"time"
)

// settled is how long after the listeners are open the start is over: migrations
// have run, templates are parsed and the first background jobs are done.
const settled = 2 * time.Second

// releaseStart returns to the kernel what only the start needed, once it is over.
// A first start runs all migrations, which leaves a heap that the server does not
// need again for long.
func releaseStart() (cancel func()) {
	t := time.AfterFunc(settled, func() {
		debug.FreeOSMemory()
		unmapProgram()
	})
	return func() { t.Stop() }
}
