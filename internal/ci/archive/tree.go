package archive

import (
	"archive/zip"
	"compress/flate"
	"encoding/binary"
	"errors"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
	"sort"
	"strings"
	"time"
)

// ErrIndex is the error of an object that is not an index.
var ErrIndex = errors.New("not an index of an archive")

// Entry is a file or a directory of an archive.
type Entry struct {
	Path    string
	Dir     bool
	Size    int64 // of a directory, of all files in it
	Files   int   // in a directory
	ModTime time.Time
	record  record
}

// Name is the last part of the path.
func (e *Entry) Name() string { return path.Base(e.Path) }

// Mode returns the mode of the file as archive/zip does.
func (e *Entry) Mode() fs.FileMode {
	if e.Dir {
		return fs.ModeDir | 0o755
	}
	h := zip.FileHeader{Name: e.Path, ExternalAttrs: e.record.mode, CreatorVersion: 3 << 8}
	return h.Mode()
}

// Tree is the index of an archive. It reads only the records that a request needs, and is
// used by one goroutine.
type Tree struct {
	records, names io.ReaderAt
	count          uint64
	start          int64 // of the names
	length         uint64
}

// OpenIndex opens an index. Records and names have separate readers, so that each can
// read ahead. It fails with ErrIndex.
func OpenIndex(records, names io.ReaderAt, size int64) (*Tree, error) {
	if size < footerSize+recordSize {
		return nil, ErrIndex
	}
	footer := make([]byte, footerSize)
	if _, err := names.ReadAt(footer, size-footerSize); err != nil && err != io.EOF {
		return nil, err
	}
	t := &Tree{records: records, names: names, count: binary.LittleEndian.Uint64(footer[24:]), length: binary.LittleEndian.Uint64(footer[32:])}
	if string(footer[:len(magic)]) != magic || t.count > MaxEntries+1 || t.count*recordSize+t.length+footerSize != uint64(size) {
		return nil, ErrIndex
	}
	t.start = int64(t.count * recordSize)
	return t, nil
}

func (t *Tree) record(i uint64) (record, error) {
	if i >= t.count {
		return record{}, ErrIndex
	}
	var buf [recordSize]byte
	if _, err := t.records.ReadAt(buf[:], int64(i*recordSize)); err != nil && err != io.EOF {
		return record{}, err
	}
	return decodeRecord(buf[:]), nil
}

func (t *Tree) name(r record) (string, error) {
	if uint64(r.name)+uint64(r.length) > t.length {
		return "", ErrIndex
	}
	buf := make([]byte, r.length)
	if _, err := t.names.ReadAt(buf, t.start+int64(r.name)); err != nil && err != io.EOF {
		return "", err
	}
	return string(buf), nil
}

// Find returns the entry of a clean path, "." for the root; fs.ErrNotExist. An archive can
// contain a file and a directory of the same path: dir chooses between them.
func (t *Tree) Find(name string, dir bool) (*Entry, error) {
	at, err := t.record(0)
	if err != nil {
		return nil, err
	}
	for rest := name; name != "." && rest != ""; {
		var part string
		var more bool
		part, rest, more = strings.Cut(rest, "/")
		if at, err = t.child(at, part, more || dir); err != nil {
			return nil, err
		}
	}
	return entryOf(name, at), nil
}

func entryOf(name string, r record) *Entry {
	e := &Entry{Path: name, Dir: r.dir, Size: int64(r.size), ModTime: time.Unix(r.time, 0).UTC(), record: r}
	if r.dir {
		e.Files, e.ModTime = int(r.packed), time.Time{}
	}
	return e
}

// child finds a child of a directory by binary search.
func (t *Tree) child(in record, name string, dir bool) (record, error) {
	from, n := in.at, int(in.dirs)
	if !dir {
		from, n = in.at+uint64(in.dirs), int(in.count-in.dirs)
	}
	var fault error
	found := sort.Search(n, func(i int) bool {
		if fault != nil {
			return true
		}
		r, err := t.record(from + uint64(i))
		var own string
		if err == nil {
			own, err = t.name(r)
		}
		fault = err
		return own >= name
	})
	if fault != nil {
		return record{}, fault
	}
	if found == n {
		return record{}, fs.ErrNotExist
	}
	r, err := t.record(from + uint64(found))
	if err != nil {
		return record{}, err
	}
	own, err := t.name(r)
	if err == nil && own != name {
		err = fs.ErrNotExist
	}
	return r, err
}

// List lists up to limit entries of a directory, directories first, by name; more reports
// that there are others. fs.ErrNotExist.
func (t *Tree) List(dir string, limit int) (list []Entry, more bool, err error) {
	in, err := t.Find(dir, true)
	if err != nil {
		return nil, false, err
	}
	n := min(uint64(in.record.count), uint64(limit))
	for i := range n {
		e, err := t.at(in, i)
		if err != nil {
			return nil, false, err
		}
		list = append(list, *e)
	}
	return list, n < uint64(in.record.count), nil
}

// at returns a child of a directory.
func (t *Tree) at(in *Entry, i uint64) (*Entry, error) {
	r, err := t.record(in.record.at + i)
	if err != nil {
		return nil, err
	}
	name, err := t.name(r)
	if err != nil {
		return nil, err
	}
	return entryOf(path.Join(in.Path, name), r), nil
}

// Walk calls with for each file below a directory, subdirectories first; fs.ErrNotExist.
func (t *Tree) Walk(dir string, with func(*Entry) error) error {
	in, err := t.Find(dir, true)
	if err != nil {
		return err
	}
	return t.walk(in, 0, with)
}

func (t *Tree) walk(in *Entry, depth int, with func(*Entry) error) error {
	if depth > MaxDepth+1 {
		return ErrIndex
	}
	for i := range uint64(in.record.count) {
		e, err := t.at(in, i)
		if err != nil {
			return err
		}
		if e.Dir {
			err = t.walk(e, depth+1, with)
		} else {
			err = with(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Reader reads an archive with the help of its index.
type Reader struct {
	*Tree
	In   io.ReaderAt // the archive
	Size int64
}

// Open opens a file of the archive.
func (r *Reader) Open(e *Entry) (io.ReadCloser, error) { return e.Open(r.In, r.Size) }

// Open opens a file of the archive that the index belongs to. It fails with
// zip.ErrFormat or zip.ErrAlgorithm; reading it fails with zip.ErrFormat or
// zip.ErrChecksum if its content is not what the archive claims.
func (e *Entry) Open(in io.ReaderAt, size int64) (io.ReadCloser, error) {
	if e.Dir {
		return nil, fs.ErrInvalid
	}
	var head [localSize]byte
	at := int64(e.record.at)
	if at < 0 || at > size-localSize {
		return nil, zip.ErrFormat
	}
	if _, err := in.ReadAt(head[:], at); err != nil && err != io.EOF {
		return nil, err
	}
	le := binary.LittleEndian
	if le.Uint32(head[:]) != localSignature {
		return nil, zip.ErrFormat
	}
	at += localSize + int64(le.Uint16(head[26:])) + int64(le.Uint16(head[28:]))
	packed := int64(e.record.packed)
	if packed < 0 || at+packed > size {
		return nil, zip.ErrFormat
	}
	content := io.NewSectionReader(in, at, packed)
	if e.record.flags&1 != 0 { // encrypted
		return nil, zip.ErrAlgorithm
	}
	var r io.ReadCloser
	switch e.record.method {
	case zip.Store:
		r = io.NopCloser(content)
	case zip.Deflate:
		r = flate.NewReader(content)
	default:
		return nil, zip.ErrAlgorithm
	}
	return &checked{r: r, left: e.Size, sum: crc32.NewIEEE(), want: e.record.crc}, nil
}

// checked reads a file and verifies its size and checksum against the archive.
type checked struct {
	r    io.ReadCloser
	left int64
	sum  hash.Hash32
	want uint32
}

// Read implements io.Reader.
func (c *checked) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if c.left -= int64(n); c.left < 0 {
		return 0, zip.ErrFormat
	}
	_, _ = c.sum.Write(p[:n]) // never fails
	if _, corrupt := errors.AsType[flate.CorruptInputError](err); corrupt {
		return n, zip.ErrFormat
	}
	if err != io.EOF {
		return n, err
	}
	switch {
	case c.left > 0:
		return n, zip.ErrFormat
	case c.want != 0 && c.sum.Sum32() != c.want:
		return n, zip.ErrChecksum
	}
	return n, io.EOF
}

// Close implements io.Closer.
func (c *checked) Close() error { return c.r.Close() }
