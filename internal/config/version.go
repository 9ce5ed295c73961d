package config

// version and revision are set by the linker; see the build target of the Makefile.
// Other builds have the values below.
var (
	version  = "devel"
	revision = "unknown"
)

// Version returns the release that this binary was built from.
func Version() string { return version }

// Revision returns the commit that this binary was built from.
func Revision() string { return revision }
