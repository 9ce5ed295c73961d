package lfs

import (
	"bytes"
	"strconv"
	"strings"
)

// MaxPointer is the maximum size of a pointer file in bytes, by the specification.
const MaxPointer = 1024

// minPointer is less than the size of the shortest pointer.
const minPointer = 120

// Pointer is the content of a file that represents an LFS object in a repository.
type Pointer struct {
	OID  string // SHA-256 of the content, in hex
	Size int64
}

// maybePointer reports whether a blob of this size can be a pointer.
func maybePointer(size int64) bool { return size >= minPointer && size < MaxPointer }

// The first line of a pointer, as in the specification and in its predecessor.
const (
	pointerVersion    = "version https://git-lfs.github.com/spec/v1\n"
	preReleaseVersion = "version https://hawser.github.com/spec/v1\n"
)

// ParsePointer reads a pointer file.
//
// See https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md#the-pointer.
func ParsePointer(content []byte) (p Pointer, ok bool) {
	if !maybePointer(int64(len(content))) {
		return Pointer{}, false
	}
	rest, ok := bytes.CutPrefix(content, []byte(pointerVersion))
	if !ok {
		if rest, ok = bytes.CutPrefix(content, []byte(preReleaseVersion)); !ok {
			return Pointer{}, false
		}
	}
	sized := false
	for line := range strings.SplitSeq(strings.TrimSuffix(string(rest), "\n"), "\n") {
		key, value, found := strings.Cut(strings.TrimSuffix(line, "\r"), " ")
		switch {
		case !found:
			return Pointer{}, false
		case key == "oid":
			oid, isSHA256 := strings.CutPrefix(value, "sha256:")
			if !isSHA256 || !ValidOID(oid) || p.OID != "" {
				return Pointer{}, false
			}
			p.OID = oid
		case key == "size":
			size, err := strconv.ParseInt(value, 10, 64)
			if err != nil || size < 0 || sized {
				return Pointer{}, false
			}
			p.Size, sized = size, true
		}
	}
	return p, p.OID != "" && sized
}

// ValidOID reports whether a text is the ID of an object: a SHA-256 in lower-case
// hex.
func ValidOID(oid string) bool {
	if len(oid) != 64 {
		return false
	}
	for _, c := range []byte(oid) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
