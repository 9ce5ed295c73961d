package archive

import (
	"archive/zip"
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"time"
)

const (
	endSize     = 22
	end64Size   = 56
	locatorSize = 20
	headerSize  = 46
	localSize   = 30

	endSignature     = 0x06054b50
	end64Signature   = 0x06064b50
	locatorSignature = 0x07064b50
	headerSignature  = 0x02014b50
	localSignature   = 0x04034b50

	// maxFile is the largest size of a file that is believed, in bytes. An archive may
	// claim any, and the sum of MaxEntries of them must fit into an int64.
	maxFile = 1 << 43
)

// end is the end of central directory record of an archive.
type end struct {
	at      int64 // offset of the record
	size    int64
	offset  int64
	entries uint64
}

// readDirectory streams the central directory of a zip archive. The name is valid
// until add returns.
func readDirectory(ctx context.Context, in io.ReaderAt, size int64, add func(name []byte, r record) error) error {
	e, err := findEnd(in, size)
	if err != nil {
		return err
	}
	if e.size > MaxDirectory {
		return &LimitError{fmt.Sprintf("The list of files of the archive has more than %d MiB", MaxDirectory>>20)}
	}
	// Data before the archive shifts all offsets.
	base := e.at - e.size - e.offset
	if base < 0 || e.offset < 0 || e.at-e.size < 0 {
		return zip.ErrFormat
	}
	r := bufio.NewReaderSize(io.NewSectionReader(in, e.at-e.size, e.size), 64<<10)
	var head [headerSize]byte
	var text []byte
	for n := uint64(0); n < e.entries; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return broken(err)
		}
		le := binary.LittleEndian
		if le.Uint32(head[:]) != headerSignature {
			return zip.ErrFormat
		}
		name, extra, comment := int(le.Uint16(head[28:])), int(le.Uint16(head[30:])), int(le.Uint16(head[32:]))
		if cap(text) < name+extra {
			text = make([]byte, name+extra)
		}
		text = text[:name+extra]
		if _, err := io.ReadFull(r, text); err != nil {
			return broken(err)
		}
		if _, err := r.Discard(comment); err != nil {
			return broken(err)
		}
		rec := record{
			flags: le.Uint16(head[8:]), method: le.Uint16(head[10:]), crc: le.Uint32(head[16:]), packed: uint64(le.Uint32(head[20:])),
			size: uint64(le.Uint32(head[24:])), at: uint64(le.Uint32(head[42:])), mode: le.Uint32(head[38:]),
			time: dosTime(le.Uint16(head[14:]), le.Uint16(head[12:])),
		}
		rec.readExtra(text[name:])
		rec.at += uint64(base)
		if rec.at > uint64(size) || rec.packed > uint64(size) || rec.size > maxFile {
			return zip.ErrFormat
		}
		if err := add(text[:name], rec); err != nil {
			return err
		}
	}
	return nil
}

// broken converts an unexpected end of the directory to an error of the archive.
func broken(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return zip.ErrFormat
	}
	return err
}

// readExtra reads sizes that take more than 32 bits, and times in UTC.
func (r *record) readExtra(extra []byte) {
	le := binary.LittleEndian
	for len(extra) >= 4 {
		tag, n := le.Uint16(extra), int(le.Uint16(extra[2:]))
		if extra = extra[4:]; n > len(extra) {
			return
		}
		field := extra[:n]
		extra = extra[n:]
		switch tag {
		case 0x0001:
			for _, value := range []*uint64{&r.size, &r.packed, &r.at} {
				if *value == 0xffffffff && len(field) >= 8 {
					*value, field = le.Uint64(field), field[8:]
				}
			}
		case 0x5455:
			if len(field) >= 5 && field[0]&1 != 0 {
				r.time = int64(le.Uint32(field[1:]))
			}
		}
	}
}

func dosTime(date, clock uint16) int64 {
	return time.Date(int(date>>9)+1980, time.Month(date>>5&0xf), int(date&0x1f), int(clock>>11), int(clock>>5&0x3f), int(clock&0x1f)*2, 0, time.UTC).Unix()
}

// findEnd finds the record at the end of an archive.
func findEnd(in io.ReaderAt, size int64) (end, error) {
	n := min(size, 64<<10+endSize)
	tail := make([]byte, n)
	if _, err := in.ReadAt(tail, size-n); err != nil && err != io.EOF {
		return end{}, err
	}
	le := binary.LittleEndian
	for i := len(tail) - endSize; i >= 0; i-- {
		if le.Uint32(tail[i:]) != endSignature || i+endSize+int(le.Uint16(tail[i+20:])) > len(tail) {
			continue
		}
		e := end{
			at: size - n + int64(i), entries: uint64(le.Uint16(tail[i+10:])), size: int64(le.Uint32(tail[i+12:])), offset: int64(le.Uint32(tail[i+16:])),
		}
		if e.entries != 0xffff && e.size != 0xffffffff && e.offset != 0xffffffff {
			return e, nil
		}
		if i < locatorSize || le.Uint32(tail[i-locatorSize:]) != locatorSignature {
			return e, nil
		}
		at := int64(le.Uint64(tail[i-locatorSize+8:]))
		head := make([]byte, end64Size)
		if at < 0 || at > size-end64Size {
			return end{}, zip.ErrFormat
		}
		if _, err := in.ReadAt(head, at); err != nil && err != io.EOF {
			return end{}, err
		}
		if le.Uint32(head) != end64Signature {
			return end{}, zip.ErrFormat
		}
		e = end{at: at, entries: le.Uint64(head[32:]), size: int64(le.Uint64(head[40:])), offset: int64(le.Uint64(head[48:]))}
		if e.size < 0 || e.offset < 0 {
			return end{}, zip.ErrFormat
		}
		return e, nil
	}
	return end{}, zip.ErrFormat
}
