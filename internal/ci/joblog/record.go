package joblog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// record is what stands before a piece of a log in its segment.
type record struct {
	jobID, at int64
	size      int    // of the piece
	sum       uint32 // of the piece
	kind      byte
}

const (
	pieceKind   = 1
	restartKind = 2 // the log is begun again; there is no piece
	removedKind = 3 // was a piece
)

// recordSize is how many bytes a record takes up: a mark, the job, the place
// in its log, the size and sum of the piece, the sum of all that, and the kind,
// which alone is ever changed.
const (
	recordSize   = 4 + 8 + 8 + 4 + 4 + 4 + 1
	recordMark   = 0x676f6c31 // "1log"
	biggestPiece = 64 << 20
)

func (r record) append(b []byte) []byte {
	from := len(b)
	b = binary.LittleEndian.AppendUint32(b, recordMark)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.jobID))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.at))
	b = binary.LittleEndian.AppendUint32(b, uint32(r.size))
	b = binary.LittleEndian.AppendUint32(b, r.sum)
	b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b[from:]))
	return append(b, r.kind)
}

// parseRecord reads a record; false when there is none.
func parseRecord(b []byte) (record, bool) {
	if len(b) < recordSize || binary.LittleEndian.Uint32(b) != recordMark ||
		binary.LittleEndian.Uint32(b[28:]) != crc32.ChecksumIEEE(b[:28]) {
		return record{}, false
	}
	r := record{
		jobID: int64(binary.LittleEndian.Uint64(b[4:])), at: int64(binary.LittleEndian.Uint64(b[12:])),
		size: int(binary.LittleEndian.Uint32(b[20:])), sum: binary.LittleEndian.Uint32(b[24:]), kind: b[32],
	}
	return r, r.size <= biggestPiece && r.kind >= pieceKind && r.kind <= removedKind
}

// load reads what there is, once.
func (l *segmentStore) load() error {
	if l.loaded {
		return nil
	}
	l.logs, l.segments, l.now = map[int64]*segmentLog{}, map[int64]*segment{}, nil
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	names, err := filepath.Glob(filepath.Join(l.dir, "*.segment"))
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		s := &segment{}
		if _, err := fmt.Sscanf(filepath.Base(name), "%d.segment", &s.number); err != nil {
			continue
		}
		if s.file, err = os.OpenFile(name, os.O_RDWR, 0); err != nil {
			return err
		}
		if err := l.read(s); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", name, err), s.file.Close())
		}
		l.segments[s.number], l.now = s, s
	}
	for _, s := range l.segments {
		if s.logs == 0 {
			err = errors.Join(err, l.drop(s))
		}
	}
	l.loaded = err == nil
	return err
}

// read reads the records of a segment up to an incomplete one, which the server
// was writing when it was killed or the machine went down. Its write was never
// confirmed.
func (l *segmentStore) read(s *segment) error {
	head := make([]byte, recordSize)
	var content []byte
	for {
		_, err := s.file.ReadAt(head, s.size)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		r, ok := parseRecord(head)
		if err != nil || !ok {
			break
		}
		content = slices.Grow(content[:0], r.size)[:r.size]
		if _, err := s.file.ReadAt(content, s.size+recordSize); errors.Is(err, io.EOF) && r.size > 0 {
			break
		} else if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if crc32.ChecksumIEEE(content) != r.sum {
			break
		}
		l.take(s, r, content)
		s.size += recordSize + int64(r.size)
	}
	return s.file.Truncate(s.size)
}

// take takes up one record at the end of what was read of a segment.
func (l *segmentStore) take(s *segment, r record, content []byte) {
	log := l.logs[r.jobID]
	switch {
	case r.kind == restartKind && log != nil:
		l.again(r.jobID)
	case r.kind == pieceKind && (log == nil && r.at == 0 || log != nil && log.size == r.at):
		l.extend(r.jobID, piece{s, r.at, s.size + recordSize, int64(r.size)})
		log = l.logs[r.jobID]
		log.crc = crc32.Update(log.crc, crc32.IEEETable, content)
	}
}
