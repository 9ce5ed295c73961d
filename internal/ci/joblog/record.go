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

// record is the header of a chunk in a segment.
type record struct {
	jobID, at int64
	size      int    // bytes of the chunk
	sum       uint32 // CRC-32 of the chunk
	kind      byte
}

const (
	chunkKind   = 1
	restartKind = 2 // the log is restarted; there is no content
	removedKind = 3 // a chunk of a log that was removed
)

// recordSize is the size of a header: magic number, job, offset in the log, size
// and CRC-32 of the chunk, CRC-32 of these fields, and the kind. The kind is last
// and not covered by the checksum, because it is the only byte that is ever
// overwritten.
const (
	recordSize  = 4 + 8 + 8 + 4 + 4 + 4 + 1
	recordMagic = 0x676f6c31 // "1log"
	maxChunk    = 64 << 20
)

func (r record) append(b []byte) []byte {
	from := len(b)
	b = binary.LittleEndian.AppendUint32(b, recordMagic)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.jobID))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.at))
	b = binary.LittleEndian.AppendUint32(b, uint32(r.size))
	b = binary.LittleEndian.AppendUint32(b, r.sum)
	b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b[from:]))
	return append(b, r.kind)
}

// parseRecord parses a header; false if it is invalid.
func parseRecord(b []byte) (record, bool) {
	if len(b) < recordSize || binary.LittleEndian.Uint32(b) != recordMagic ||
		binary.LittleEndian.Uint32(b[28:]) != crc32.ChecksumIEEE(b[:28]) {
		return record{}, false
	}
	r := record{
		jobID: int64(binary.LittleEndian.Uint64(b[4:])), at: int64(binary.LittleEndian.Uint64(b[12:])),
		size: int(binary.LittleEndian.Uint32(b[20:])), sum: binary.LittleEndian.Uint32(b[24:]), kind: b[32],
	}
	return r, r.size <= maxChunk && r.kind >= chunkKind && r.kind <= removedKind
}

// load reads the segments of the directory, once.
func (l *segmentStore) load() error {
	if l.loaded {
		return nil
	}
	l.logs, l.segments, l.current = map[int64]*segmentLog{}, map[int64]*segment{}, nil
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
		l.segments[s.number], l.current = s, s
	}
	for _, s := range l.segments {
		if s.logs == 0 {
			err = errors.Join(err, l.drop(s))
		}
	}
	l.loaded = err == nil
	return err
}

// read indexes the records of a segment and truncates it at the first incomplete
// one, which was being written at a crash. Its write was never confirmed.
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
		l.index(s, r, content)
		s.size += recordSize + int64(r.size)
	}
	return s.file.Truncate(s.size)
}

// index adds the record that was read from a segment to its log.
func (l *segmentStore) index(s *segment, r record, content []byte) {
	log := l.logs[r.jobID]
	switch {
	case r.kind == restartKind && log != nil:
		l.startAgain(r.jobID)
	case r.kind == chunkKind && (log == nil && r.at == 0 || log != nil && log.size == r.at):
		l.extend(r.jobID, chunk{s, r.at, s.size + recordSize, int64(r.size)})
		log = l.logs[r.jobID]
		log.crc = crc32.Update(log.crc, crc32.IEEETable, content)
	}
}
