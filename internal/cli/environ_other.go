//go:build !linux

package cli

// wipe does nothing on systems without /proc.
func wipe([]string) error { return nil }
