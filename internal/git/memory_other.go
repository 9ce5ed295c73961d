//go:build !linux

package git

// limitMemory does nothing: only Linux can limit another process.
func limitMemory(int, int64) {}

// machineMemory returns 0: unknown.
func machineMemory() int64 { return 0 }
