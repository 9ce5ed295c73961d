package config

// These are set by the linker; see the build target of the Makefile. A binary
// that was built in another way keeps what stands here.
var (
	version  = "devel"
	revision = "unknown"
)

// Version is the release that this binary was built from.
func Version() string { return version }

// Revision is the commit that this binary was built from.
func Revision() string { return revision }
