package git

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"

	"github.com/klauspost/compress/zlib"
)

var (
	// errObjectSize refuses a pack with an object that is over the limit.
	errObjectSize = fmt.Errorf("object exceeds the maximum size: %w", ErrTooLarge)
	// errPackTotal refuses a pack whose objects together are over the limit.
	errPackTotal = fmt.Errorf("pack expands to too much data: %w", ErrTooLarge)
	// errPack refuses what is not a pack.
	errPack = errors.New("malformed pack")
)

// maxPackObjects bounds the number that stands in the header of a pack: git
// allocates memory for so many objects before it has seen one.
const maxPackObjects = 50_000_000

// The objects of a pack may have packBase bytes together (twice the limit of one
// object if that is more), and packRatio bytes for each byte of the pack that
// was received. An object counts with what it declares, a delta with the largest
// of its base, its result and its own data.
//
// Deflate alone reaches 1030 bytes for one. Four histories of source code with 450
// to 3,400 commits have 4 to 14; 200 versions of a file of 1 MB that differ in one
// line have 164, and the more versions there are the more it is. What is over the
// limit can be pushed in parts, each of which has packBase.
const (
	packBase  = 1 << 30
	packRatio = 4096
)

// packLarge is the number of bytes that the objects of a pack have together when
// the pack is large: few such packs are unpacked at a time.
const packLarge = 64 << 20

// The types of entries of a pack; see gitformat-pack(5).
const (
	entryCommit   = 1
	entryBlob     = 3
	entryTag      = 4
	entryOfsDelta = 6
	entryRefDelta = 7
)

// packFilter passes a pack on and checks the sizes that its entries declare:
// git allocates what an entry says before it has read its data, and a delta of
// a few bytes can declare an object of any size. An entry is passed on only
// after its sizes were checked, so git never sees one that is over the limit.
//
// The length of an entry is not in its header, so the data are inflated to find
// the next one. Nothing but a small buffer is held of them.
type packFilter struct {
	in        *bufio.Reader
	out       io.Writer
	maxObject int64
	large     func() error // called once, before the pack becomes a large one
	progress  func(done, total uint32)

	held    []byte // read and not passed on
	checked bool   // what is read belongs to an entry whose sizes were checked
	data    io.ReadCloser

	pointers bool // a blob may be an LFS pointer

	received int64 // bytes of the pack so far
	declared int64 // bytes of its objects so far
	inflated int64 // bytes of data so far
}

// run passes on one pack and stops behind it. It calls large, if that is not nil,
// before it passes on the entry with which the pack is over packLarge. It returns
// errObjectSize, errPackTotal, errPack, and the errors of large and of both sides.
func (f *packFilter) run() error {
	var head [12]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return f.broken(err)
	}
	version, count := binary.BigEndian.Uint32(head[4:]), binary.BigEndian.Uint32(head[8:])
	if string(head[:4]) != "PACK" || version != 2 && version != 3 {
		return fmt.Errorf("%w: it starts with %q", errPack, head[:8])
	}
	if count > maxPackObjects {
		return fmt.Errorf("%w: %d objects: %w", errPack, count, ErrTooLarge)
	}
	for i := range count {
		if f.progress != nil {
			f.progress(i, count)
		}
		if err := f.entry(); err != nil {
			return err
		}
	}
	if _, err := io.CopyN(io.Discard, onlyReader{f}, 20); err != nil { // the checksum, which git verifies
		return f.broken(err)
	}
	return f.flush()
}

// entry checks one entry and passes it on.
func (f *packFilter) entry() error {
	kind, size, err := f.header()
	if err != nil {
		return err
	}
	if size > f.maxObject {
		return fmt.Errorf("%w: %d bytes", errObjectSize, size)
	}
	if f.data == nil {
		f.data, err = zlib.NewReader(f)
	} else {
		err = f.data.(zlib.Resetter).Reset(f, nil)
	}
	if err != nil {
		return f.broken(err)
	}
	most, small := size, size
	if kind == entryOfsDelta || kind == entryRefDelta {
		n, largest, result, err := f.delta(size)
		if err != nil {
			return err
		}
		most = max(most, largest)
		size -= n
		small = result
	}
	if err := f.count(most); err != nil {
		return err
	}
	f.checked = true
	read, err := f.look(kind, small, size)
	if err != nil {
		return f.broken(err)
	}
	n, err := io.Copy(io.Discard, io.LimitReader(f.data, size+1-read))
	n += read
	f.inflated += n
	if err != nil {
		return f.broken(err)
	}
	if n != size {
		return fmt.Errorf("%w: an object of another size than it declares", errPack)
	}
	f.checked = false
	if len(f.held) > passBytes/2 { // leave room for the next header
		return f.flush()
	}
	return nil
}

// The sizes of blobs that can be LFS pointers.
const (
	minPointer = 120
	maxPointer = 1024
)

// pointerStart is what LFS pointers begin with; the rest of the line differs.
const pointerStart = "version https://"

// look finds out whether an entry can be an LFS pointer: a blob that begins like one,
// or a delta whose result has the size of one and that inserts text. A delta of a
// tree inserts IDs, which are not text. It reads a part of the data, whose length it
// returns.
func (f *packFilter) look(kind byte, result, size int64) (int64, error) {
	delta := kind == entryOfsDelta || kind == entryRefDelta
	if f.pointers || result < minPointer || result >= maxPointer || kind != entryBlob && !delta {
		return 0, nil
	}
	part := make([]byte, min(size, 2*maxPointer))
	if !delta {
		part = part[:len(pointerStart)]
	}
	n, err := io.ReadFull(f.data, part)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // the caller finds that it is too short
	}
	f.pointers = delta && insertsText(part[:n]) || string(part[:n]) == pointerStart
	return int64(n), err
}

// insertsText reports whether all that a delta inserts is printable.
func insertsText(delta []byte) bool {
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		n := int(op)
		if op&0x80 != 0 { // a copy, with the bytes that it says
			n = bits.OnesCount8(op & 0x7f)
		} else if slices.ContainsFunc(delta[:min(n, len(delta))], func(c byte) bool { return c > '~' || c < ' ' && c != '\n' && c != '\r' }) {
			return false
		}
		delta = delta[min(n, len(delta)):]
	}
	return true
}

// count adds the size of an object to those before it.
func (f *packFilter) count(size int64) error {
	f.declared += size
	if f.declared > max(packBase, 2*f.maxObject)+packRatio*f.received {
		return fmt.Errorf("%w: %d bytes or more from %d", errPackTotal, f.declared, f.received)
	}
	if f.declared > packLarge && f.large != nil {
		large := f.large
		f.large = nil
		return large()
	}
	return nil
}

// header reads the type and size of an entry, and what names the base of a
// delta.
func (f *packFilter) header() (kind byte, size int64, err error) {
	b, err := f.ReadByte()
	if err != nil {
		return 0, 0, f.broken(err)
	}
	kind, size = b>>4&7, int64(b&15)
	for shift := 4; b&0x80 != 0; shift += 7 {
		if b, err = f.ReadByte(); err != nil {
			return 0, 0, f.broken(err)
		}
		if shift > 53 {
			return 0, 0, fmt.Errorf("%w: it declares more than 2^60 bytes", errObjectSize)
		}
		size |= int64(b&0x7f) << shift
	}
	switch {
	case kind >= entryCommit && kind <= entryTag:
	case kind == entryRefDelta:
		if _, err := io.CopyN(io.Discard, onlyReader{f}, 20); err != nil {
			return 0, 0, f.broken(err)
		}
	case kind == entryOfsDelta:
		for i := 0; ; i++ {
			if b, err = f.ReadByte(); err != nil {
				return 0, 0, f.broken(err)
			}
			if b&0x80 == 0 {
				break
			}
			if i == 9 {
				return 0, 0, fmt.Errorf("%w: the base of a delta", errPack)
			}
		}
	default:
		return 0, 0, fmt.Errorf("%w: an entry of type %d", errPack, kind)
	}
	return kind, size, nil
}

// delta checks the two sizes that the data of a delta begin with: of its base
// and of its result. It gives the number of bytes that it read, the larger size,
// and that of the result.
func (f *packFilter) delta(size int64) (read, largest, result int64, err error) {
	for range 2 {
		var n int64
		for shift := 0; ; shift += 7 {
			var b [1]byte
			if read == size {
				return 0, 0, 0, fmt.Errorf("%w: a delta of %d bytes", errPack, size)
			}
			if _, err := io.ReadFull(f.data, b[:]); err != nil {
				return 0, 0, 0, f.broken(err)
			}
			read++
			if shift > 56 {
				return 0, 0, 0, fmt.Errorf("%w: a delta declares more than 2^60 bytes", errObjectSize)
			}
			n |= int64(b[0]&0x7f) << shift
			if b[0]&0x80 == 0 {
				break
			}
		}
		if n < 0 || n > f.maxObject {
			return 0, 0, 0, fmt.Errorf("%w: a delta of %d bytes", errObjectSize, n)
		}
		largest, result = max(largest, n), n
	}
	return read, largest, result, nil
}

// broken is the error of an entry that could not be read.
func (f *packFilter) broken(err error) error {
	var wrote *writeError
	if errors.As(err, &wrote) {
		return wrote.error
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: %w", errPack, err)
}

// writeError is the failure of the side that a pack is passed on to.
type writeError struct{ error }

func (w *writeError) Unwrap() error { return w.error }

// passBytes is how much of a checked entry is passed on at once.
const passBytes = 32 << 10

// ReadByte implements io.ByteReader. Without it more would be read than belongs
// to an entry.
func (f *packFilter) ReadByte() (byte, error) {
	b, err := f.in.ReadByte()
	if err != nil {
		return 0, err
	}
	f.received++
	f.held = append(f.held, b)
	return b, f.pass()
}

// Read implements io.Reader.
func (f *packFilter) Read(p []byte) (int, error) {
	n, err := f.in.Read(p)
	f.received += int64(n)
	f.held = append(f.held, p[:n]...)
	if err != nil {
		return n, err
	}
	return n, f.pass()
}

func (f *packFilter) pass() error {
	if len(f.held) < passBytes {
		return nil
	}
	if !f.checked { // no header is so long
		return fmt.Errorf("%w: the header of an object", errPack)
	}
	if err := f.flush(); err != nil {
		return &writeError{err}
	}
	return nil
}

func (f *packFilter) flush() error {
	_, err := f.out.Write(f.held)
	f.held = f.held[:0]
	return err
}
