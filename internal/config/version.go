package config

// The linker sets these; see the build target of the Makefile. A binary that was
// built in another way has the values below.
var (
	version  = "devel"
	revision = "unknown"
)

// Version is the release that this binary was built from.
func Version() string { return version }

// Revision is the commit that this binary was built from.
func Revision() string { return revision }
