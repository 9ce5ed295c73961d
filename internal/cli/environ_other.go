//go:build !linux

package cli

// wipe does nothing: the environment of a process is in no file here.
func wipe([]string) error { return nil }
