//go:build !linux

package git

// limitMemory does nothing: the limit of another process can be set on Linux
// only.
func limitMemory(int, int64) {}

// machineMemory is not known.
func machineMemory() int64 { return 0 }
