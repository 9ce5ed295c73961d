package web

import (
	"strings"

	"svc/internal/lfs"
)

// findPointers finds files whose change is a change of an LFS pointer, and
// shows the LFS objects instead.
func (f *diffFile) findPointers() {
	if f.Binary || f.Diff == "" || len(f.Diff) > 4*lfs.MaxPointer {
		return
	}
	var before, after strings.Builder
	for line := range strings.Lines(f.Diff) {
		switch line[0] {
		case ' ':
			before.WriteString(line[1:])
			after.WriteString(line[1:])
		case '-':
			before.WriteString(line[1:])
		case '+':
			after.WriteString(line[1:])
		}
	}
	old, was := lfs.ParsePointer([]byte(before.String()))
	now, is := lfs.ParsePointer([]byte(after.String()))
	switch {
	case f.New && is:
		f.LFS = byteSize(now.Size)
	case f.Deleted && was:
		f.LFS = byteSize(old.Size)
	case was && is:
		f.LFS = byteSize(old.Size) + " → " + byteSize(now.Size)
	default:
		return
	}
	f.Binary, f.Diff, f.Added, f.Removed = true, "", 0, 0
}
