package instance

import (
	"os"
	"syscall"
)

// Disk is the file system under a storage.
type Disk struct {
	Free, Size int64 // bytes
	Missing    bool  // the directory does not exist yet; the first repository creates it
	Locked     bool  // the directory cannot be written
}

// Used returns how much of the file system is used.
func (d Disk) Used() int64 { return d.Size - d.Free }

// look reads the state of the file system of a directory. On an error the storage
// counts as locked, because nothing can be stored there.
func look(dir string) Disk {
	var d Disk
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		return Disk{Missing: true}
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return Disk{Locked: true}
	}
	d.Free, d.Size = int64(fs.Bavail)*int64(fs.Bsize), int64(fs.Blocks)*int64(fs.Bsize)
	const writable = 2
	d.Locked = syscall.Access(dir, writable) != nil
	return d
}
