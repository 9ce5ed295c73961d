// Package archive reads the zip archives of job artifacts without loading their
// list of files into memory. An index is written once, when the archive is
// stored: a tree of directories with sorted, adjacent entries, so that a file is
// found by binary search and a directory is listed by reading one part.
package archive

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sort"
	"strings"
)

const (
	// MaxEntries is the maximum number of files and directories of an archive that
	// is indexed.
	MaxEntries = 500_000
	// MaxDirectory is the maximum size of the central directory of such an archive,
	// in bytes.
	MaxDirectory = 64 << 20
	// MaxName is the maximum length of the name of a file, in bytes.
	MaxName = 4096
	// MaxDepth is the maximum number of directories above a file.
	MaxDepth = 100
)

// LimitError is the error of an archive that exceeds a limit.
type LimitError struct{ Reason string }

func (e *LimitError) Error() string { return e.Reason }

// The index is a table of records, the names of its entries, and a footer.
// Record 0 is the root. The children of a directory are consecutive records:
// directories first, each group by name.
const (
	magic      = "svc archive index 1\n"
	recordSize = 56
	footerSize = 40
)

// record is an entry of the index.
type record struct {
	name   uint32 // offset among the names
	length uint16
	dir    bool
	method uint16
	flags  uint16
	mode   uint32 // of zip, unix in its upper half
	crc    uint32
	size   uint64 // of a directory, of all files in it
	packed uint64 // size in the archive; of a directory, the number of files in it
	at     uint64 // of the local header; of a directory, the first child
	time   int64  // seconds since 1970
	count  uint32 // children
	dirs   uint32 // children that are directories
}

func (r *record) encode(to []byte) {
	le := binary.LittleEndian
	le.PutUint32(to[0:], r.name)
	le.PutUint16(to[4:], r.length)
	kind := r.method << 1
	if r.dir {
		kind = 1
	}
	le.PutUint16(to[6:], kind)
	le.PutUint64(to[8:], r.size)
	le.PutUint64(to[16:], r.packed)
	le.PutUint64(to[24:], r.at)
	le.PutUint64(to[32:], uint64(r.time))
	if r.dir {
		le.PutUint32(to[40:], r.count)
		le.PutUint32(to[44:], r.dirs)
	} else {
		le.PutUint32(to[40:], r.crc)
		le.PutUint32(to[44:], r.mode)
	}
	le.PutUint16(to[48:], r.flags)
}

func decodeRecord(from []byte) record {
	le := binary.LittleEndian
	r := record{
		name: le.Uint32(from), length: le.Uint16(from[4:]), size: le.Uint64(from[8:]), packed: le.Uint64(from[16:]), at: le.Uint64(from[24:]),
		time: int64(le.Uint64(from[32:])), flags: le.Uint16(from[48:]),
	}
	kind, a, b := le.Uint16(from[6:]), le.Uint32(from[40:]), le.Uint32(from[44:])
	if r.dir = kind&1 == 1; r.dir {
		r.count, r.dirs = a, b
		return r
	}
	r.method, r.crc, r.mode = kind>>1, a, b
	return r
}

// listed is a file of the central directory while the index is built.
type listed struct {
	record
	start uint32 // of its whole name in the buffer of names
	end   uint32
}

// builder builds the index of one archive.
type builder struct {
	read  []byte // the names, while they are read
	names string
	files []listed
	sizes []uint64 // sizes[i] is the sum of the sizes of the files before i
	kinds []uint32 // likewise the number of files, without directories
}

// WriteIndex writes the index of a zip archive. It fails with a LimitError if the
// archive exceeds a limit, and with zip.ErrFormat if the content is not a zip archive.
// Entries whose names point out of the archive are left out; of several entries with the
// same name, the first is used.
func WriteIndex(ctx context.Context, w io.Writer, in io.ReaderAt, size int64) error {
	b := &builder{}
	if err := readDirectory(ctx, in, size, b.add); err != nil {
		return err
	}
	b.names, b.read = string(b.read), nil
	slices.SortStableFunc(b.files, func(x, y listed) int { return compare(b.path(x), b.path(y)) })
	b.files = slices.CompactFunc(b.files, func(x, y listed) bool { return b.path(x) == b.path(y) })
	b.sizes, b.kinds = make([]uint64, len(b.files)+1), make([]uint32, len(b.files)+1)
	for i, f := range b.files {
		b.sizes[i+1], b.kinds[i+1] = b.sizes[i], b.kinds[i]
		if !strings.HasSuffix(b.path(f), "/") {
			b.sizes[i+1] += f.size
			b.kinds[i+1]++
		}
	}
	return b.write(ctx, w)
}

func (b *builder) path(f listed) string { return b.names[f.start:f.end] }

// add adds an entry of the central directory.
func (b *builder) add(name []byte, r record) error {
	path := string(name)
	if !fs.ValidPath(strings.TrimSuffix(path, "/")) || path == "." || path == "./" {
		return nil // it points out of the archive
	}
	switch {
	case len(path) > MaxName:
		return &LimitError{fmt.Sprintf("The archive has a file with a path of more than %d bytes", MaxName)}
	case strings.Count(path, "/") > MaxDepth:
		return &LimitError{fmt.Sprintf("The archive has directories that are nested more than %d levels deep", MaxDepth)}
	case len(b.files) >= MaxEntries:
		return tooMany()
	}
	f := listed{record: r, start: uint32(len(b.read))}
	b.read = append(b.read, name...)
	f.end = uint32(len(b.read))
	b.files = append(b.files, f)
	return nil
}

func tooMany() error {
	return &LimitError{fmt.Sprintf("The archive has more than %d files and directories", MaxEntries)}
}

// compare orders paths by their components. In a directory, subdirectories come first.
// The path of a directory ends with a slash and comes before its content.
func compare(a, b string) int {
	n := min(len(a), len(b))
	i := 0
	for i < n && a[i] == b[i] {
		i++
	}
	if i == n && (len(a) == len(b) || n > 0 && a[n-1] == '/') {
		return cmp.Compare(len(a), len(b))
	}
	from := strings.LastIndexByte(a[:i], '/') + 1
	nameA, _, dirA := strings.Cut(a[from:], "/")
	nameB, _, dirB := strings.Cut(b[from:], "/")
	if dirA != dirB {
		if dirA {
			return -1
		}
		return 1
	}
	return cmp.Compare(nameA, nameB)
}

// span is a directory whose children are not yet written: the files whose paths have the
// same first depth bytes as the first file.
type span struct {
	from, to uint32
	depth    uint32
}

// write writes the records breadth first, so that the children of a directory are
// consecutive, then the names.
func (b *builder) write(ctx context.Context, w io.Writer) error {
	out := bufio.NewWriterSize(w, 64<<10)
	root := span{0, uint32(len(b.files)), 0}
	var names []byte
	buf := make([]byte, recordSize)
	next := uint64(1) // the record that the next child gets
	put := func(r record, name string) error {
		r.name, r.length = uint32(len(names)), uint16(len(name))
		names = append(names, name...)
		r.encode(buf)
		_, err := out.Write(buf)
		return err
	}
	first := b.directory(root, next)
	next += uint64(first.count)
	if err := put(first, ""); err != nil {
		return err
	}
	for queue := []span{root}; len(queue) > 0; queue = queue[1:] {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := b.children(queue[0], func(name string, s span, dir bool) error {
			if !dir {
				return put(b.files[s.from].record, name)
			}
			r := b.directory(s, next)
			if next += uint64(r.count); next > MaxEntries {
				return tooMany()
			}
			queue = append(queue, s)
			return put(r, name)
		})
		if err != nil {
			return err
		}
	}
	footer := make([]byte, footerSize)
	copy(footer, magic)
	binary.LittleEndian.PutUint64(footer[24:], next)
	binary.LittleEndian.PutUint64(footer[32:], uint64(len(names)))
	_, err := out.Write(names)
	if err == nil {
		_, err = out.Write(footer)
	}
	return errors.Join(err, out.Flush())
}

// directory returns the record of a directory whose children begin at a record.
func (b *builder) directory(s span, children uint64) record {
	r := record{dir: true, at: children, size: b.sizes[s.to] - b.sizes[s.from], packed: uint64(b.kinds[s.to] - b.kinds[s.from])}
	// The function returns no error.
	_ = b.children(s, func(_ string, _ span, dir bool) error {
		if r.count++; dir {
			r.dirs++
		}
		return nil
	})
	return r
}

// children calls with for each child of a directory, in order.
func (b *builder) children(s span, with func(name string, s span, dir bool) error) error {
	for i := s.from; i < s.to; {
		path := b.path(b.files[i])
		rest := path[s.depth:]
		if rest == "" { // the directory itself
			i++
			continue
		}
		name, _, dir := strings.Cut(rest, "/")
		child := span{i, i + 1, s.depth + uint32(len(name)) + 1}
		if dir {
			prefix := path[:child.depth]
			n := sort.Search(int(s.to-i), func(k int) bool { return !strings.HasPrefix(b.path(b.files[i+uint32(k)]), prefix) })
			child.to = i + uint32(n)
		}
		if err := with(name, child, dir); err != nil {
			return err
		}
		i = child.to
	}
	return nil
}
