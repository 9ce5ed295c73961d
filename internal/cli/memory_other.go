//go:build !linux

package cli

// unmapProgram does nothing here.
func unmapProgram() {}
