// Package pack checks Git packs while they are received; see gitformat-pack(5).
package pack

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
	// ErrTooLarge is wrapped by the errors about limits.
	ErrTooLarge = errors.New("too large")
	// ErrObjectSize means that an object exceeds the limit.
	ErrObjectSize = fmt.Errorf("object exceeds the maximum size: %w", ErrTooLarge)
	// ErrTotal means that all objects together exceed the limit.
	ErrTotal = fmt.Errorf("pack expands to too much data: %w", ErrTooLarge)
	// ErrMalformed means that the input is not a valid pack.
	ErrMalformed = errors.New("malformed pack")
)

// maxObjects limits the number of objects in the header of a pack, because git allocates
// memory for this number before it reads the first one.
const maxObjects = 50_000_000

// The objects of a pack may have totalBase bytes together (twice the limit of one object if
// that is more), plus totalRatio bytes for each received byte of the pack. An object counts
// with its declared size, a delta with the largest of its base, its result and its data.
//
// Deflate alone reaches a ratio of 1030. Four histories of source code with 450 to 3,400
// commits have ratios of 4 to 14; 200 versions of a file of 1 MB that differ in one line have
// 164, and more versions have a higher ratio. A larger history can be pushed in parts, each
// of which has totalBase.
// limit can be pushed in parts, each of which has totalBase.
const (
	totalBase  = 1 << 30
	totalRatio = 4096
)

// largeTotal is the total size of the objects from which a pack counts as large. Only a few
// such packs are unpacked at a time.
const largeTotal = 64 << 20

// The types of entries of a pack; see gitformat-pack(5).
const (
	entryCommit   = 1
	entryBlob     = 3
	entryTag      = 4
	entryOfsDelta = 6
	entryRefDelta = 7
)

// Filter copies a pack and checks the sizes that its entries declare, because git allocates
// the declared size before it reads the data, and a delta of a few bytes can declare an object
// of any size. An entry is copied only after its sizes were checked, so git never sees an
// entry over the limit.
//
// The header of an entry does not contain its compressed length, so the data are inflated to
// find the next entry. Only a small buffer is held in memory.
type Filter struct {
	In        *bufio.Reader
	Out       io.Writer
	MaxObject int64                    // bytes of one object
	Large     func() error             // called once, before the pack becomes large; may be nil
	Progress  func(done, total uint32) // may be nil

	Pointers bool  // set if a blob may be an LFS pointer
	Received int64 // bytes of the pack so far

	held    []byte // read, but not copied yet
	checked bool   // the sizes of the current entry were checked
	data    io.ReadCloser

	declared int64 // declared size of the objects so far
	inflated int64 // inflated bytes so far
}

// Run copies one pack and stops after it. It calls Large, if that is not nil, before it copies
// the entry with which the pack exceeds largeTotal. It returns ErrObjectSize, ErrTotal,
// ErrMalformed, and the errors of Large, the reader and the writer.
func (f *Filter) Run() error {
	var head [12]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return f.broken(err)
	}
	version, count := binary.BigEndian.Uint32(head[4:]), binary.BigEndian.Uint32(head[8:])
	if string(head[:4]) != "PACK" || version != 2 && version != 3 {
		return fmt.Errorf("%w: it starts with %q", ErrMalformed, head[:8])
	}
	if count > maxObjects {
		return fmt.Errorf("%w: %d objects: %w", ErrMalformed, count, ErrTooLarge)
	}
	for i := range count {
		if f.Progress != nil {
			f.Progress(i, count)
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

// entry checks one entry and copies it.
func (f *Filter) entry() error {
	kind, size, err := f.header()
	if err != nil {
		return err
	}
	if size > f.MaxObject {
		return fmt.Errorf("%w: %d bytes", ErrObjectSize, size)
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
		return fmt.Errorf("%w: an object of another size than it declares", ErrMalformed)
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

// pointerStart is the start of an LFS pointer; the rest of the line varies.
const pointerStart = "version https://"

// look detects entries that can be LFS pointers: blobs that start like one, and deltas whose
// result has the size of one and that insert text. Deltas of trees insert IDs, which are not
// text. It reads a part of the data and returns its length.
func (f *Filter) look(kind byte, result, size int64) (int64, error) {
	delta := kind == entryOfsDelta || kind == entryRefDelta
	if f.Pointers || result < minPointer || result >= maxPointer || kind != entryBlob && !delta {
		return 0, nil
	}
	part := make([]byte, min(size, 2*maxPointer))
	if !delta {
		part = part[:len(pointerStart)]
	}
	n, err := io.ReadFull(f.data, part)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // the caller detects that it is too short
	}
	f.Pointers = delta && insertsText(part[:n]) || string(part[:n]) == pointerStart
	return int64(n), err
}

// insertsText reports whether all data that a delta inserts is printable.
func insertsText(delta []byte) bool {
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		n := int(op)
		if op&0x80 != 0 { // a copy instruction with its arguments
			n = bits.OnesCount8(op & 0x7f)
		} else if slices.ContainsFunc(delta[:min(n, len(delta))], func(c byte) bool { return c > '~' || c < ' ' && c != '\n' && c != '\r' }) {
			return false
		}
		delta = delta[min(n, len(delta)):]
	}
	return true
}

// count adds the size of an object to the total.
func (f *Filter) count(size int64) error {
	f.declared += size
	if f.declared > max(totalBase, 2*f.MaxObject)+totalRatio*f.Received {
		return fmt.Errorf("%w: %d bytes or more from %d", ErrTotal, f.declared, f.Received)
	}
	if f.declared > largeTotal && f.Large != nil {
		large := f.Large
		f.Large = nil
		return large()
	}
	return nil
}

// header reads the type and size of an entry, and the reference to the base of a delta.
func (f *Filter) header() (kind byte, size int64, err error) {
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
			return 0, 0, fmt.Errorf("%w: it declares more than 2^60 bytes", ErrObjectSize)
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
				return 0, 0, fmt.Errorf("%w: the base of a delta", ErrMalformed)
			}
		}
	default:
		return 0, 0, fmt.Errorf("%w: an entry of type %d", ErrMalformed, kind)
	}
	return kind, size, nil
}

// delta checks the two sizes at the start of a delta: of its base and of its result. It
// returns the number of bytes that it read, the larger size, and the size of the result.
func (f *Filter) delta(size int64) (read, largest, result int64, err error) {
	for range 2 {
		var n int64
		for shift := 0; ; shift += 7 {
			var b [1]byte
			if read == size {
				return 0, 0, 0, fmt.Errorf("%w: a delta of %d bytes", ErrMalformed, size)
			}
			if _, err := io.ReadFull(f.data, b[:]); err != nil {
				return 0, 0, 0, f.broken(err)
			}
			read++
			if shift > 56 {
				return 0, 0, 0, fmt.Errorf("%w: a delta declares more than 2^60 bytes", ErrObjectSize)
			}
			n |= int64(b[0]&0x7f) << shift
			if b[0]&0x80 == 0 {
				break
			}
		}
		if n < 0 || n > f.MaxObject {
			return 0, 0, 0, fmt.Errorf("%w: a delta of %d bytes", ErrObjectSize, n)
		}
		largest, result = max(largest, n), n
	}
	return read, largest, result, nil
}

// broken returns the error of an entry that could not be read.
func (f *Filter) broken(err error) error {
	var wrote *writeError
	if errors.As(err, &wrote) {
		return wrote.error
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: %w", ErrMalformed, err)
}

// writeError is an error of the writer.
type writeError struct{ error }

func (w *writeError) Unwrap() error { return w.error }

// passBytes is the number of bytes of a checked entry that are copied at once.
const passBytes = 32 << 10

// ReadByte implements io.ByteReader. Without it, flate would read beyond the end of an
// entry.
func (f *Filter) ReadByte() (byte, error) {
	b, err := f.In.ReadByte()
	if err != nil {
		return 0, err
	}
	f.Received++
	f.held = append(f.held, b)
	return b, f.pass()
}

// Read implements io.Reader.
func (f *Filter) Read(p []byte) (int, error) {
	n, err := f.In.Read(p)
	f.Received += int64(n)
	f.held = append(f.held, p[:n]...)
	if err != nil {
		return n, err
	}
	return n, f.pass()
}

func (f *Filter) pass() error {
	if len(f.held) < passBytes {
		return nil
	}
	if !f.checked { // headers are shorter
		return fmt.Errorf("%w: the header of an object", ErrMalformed)
	}
	if err := f.flush(); err != nil {
		return &writeError{err}
	}
	return nil
}

func (f *Filter) flush() error {
	_, err := f.Out.Write(f.held)
	f.held = f.held[:0]
	return err
}

// onlyReader hides all methods but Read, so that io.CopyBuffer uses its buffer.
type onlyReader struct{ io.Reader }
