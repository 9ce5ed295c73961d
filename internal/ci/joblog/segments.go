package joblog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"svc/internal/durable"
)

// segmentStore keeps live logs in files that many jobs share. A job costs no
// file of its own, and those that end together wait for the disk together.
//
// A segment is a row of records (see record) and is only added to. Which of
// them make up a log is held in memory, and read again at the start. A segment
// goes when none of its logs is live any more.
type segmentStore struct {
	dir   string
	limit int64 // how large a segment becomes before the next is begun

	mu       sync.Mutex
	loaded   bool
	logs     map[int64]*segmentLog
	segments map[int64]*segment
	now      *segment // the one that is written to
	buf      []byte
}

// segmentSize is the limit of segments.
const segmentSize = 32 << 20

// segment is one file.
type segment struct {
	number int64
	file   *os.File
	size   int64
	logs   int // live ones
	used   int // by readers
	gone   bool

	syncing sync.Mutex
	synced  int64 // bytes that survive the machine
}

// segmentLog is a log.
type segmentLog struct {
	pieces []piece
	size   int64
	crc    uint32
	before *segmentLog // what there was when it was begun again
}

// piece is a part of a log.
type piece struct {
	in       *segment
	at       int64 // in the log
	position int64 // in the segment
	size     int64
}

func (l *segmentStore) add(_ context.Context, jobID, at int64, p []byte) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.load(); err != nil {
		return 0, err
	}
	log := l.logs[jobID]
	size := int64(0)
	if log != nil {
		size = log.size
	}
	if size != at {
		return size, &GapError{size}
	}
	if len(p) == 0 {
		return size, nil
	}
	position, err := l.write(record{jobID: jobID, at: at, size: len(p), sum: crc32.ChecksumIEEE(p), kind: pieceKind}, p)
	if err != nil {
		return size, err
	}
	l.extend(jobID, piece{l.now, at, position, int64(len(p))})
	log = l.logs[jobID]
	log.crc = crc32.Update(log.crc, crc32.IEEETable, p)
	return log.size, nil
}

// extend adds a piece to what is known of a log.
func (l *segmentStore) extend(jobID int64, p piece) {
	log := l.logs[jobID]
	if log == nil {
		log = &segmentLog{}
		l.logs[jobID] = log
	}
	if !l.within(log, p.in) {
		p.in.logs++
	}
	log.pieces = append(log.pieces, p)
	log.size += p.size
}

// within reports whether a log has something in a segment: pieces are added to
// one segment after the other.
func (l *segmentStore) within(log *segmentLog, in *segment) bool {
	for ; log != nil; log = log.before {
		if n := len(log.pieces); n > 0 && log.pieces[n-1].in == in {
			return true
		}
	}
	return false
}

// write adds a record to the newest segment, and gives the place of its
// content.
func (l *segmentStore) write(r record, content []byte) (int64, error) {
	if l.now == nil || l.now.size >= l.limit {
		if err := l.begin(); err != nil {
			return 0, err
		}
	}
	l.buf = append(r.append(l.buf[:0]), content...)
	if _, err := l.now.file.WriteAt(l.buf, l.now.size); err != nil {
		// What is there of it would be taken for the end of the segment.
		return 0, errors.Join(err, l.now.file.Truncate(l.now.size))
	}
	position := l.now.size + recordSize
	l.now.size += int64(len(l.buf))
	if cap(l.buf) > 1<<20 {
		l.buf = nil
	}
	return position, nil
}

// begin begins a segment.
func (l *segmentStore) begin() error {
	number := int64(1)
	if l.now != nil {
		number = l.now.number + 1
	}
	f, err := os.OpenFile(l.path(number), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	old := l.now // without a file when it is gone
	l.now = &segment{number: number, file: f}
	l.segments[number] = l.now
	if old != nil && old.file != nil && old.logs == 0 {
		return l.drop(old)
	}
	return nil
}

func (l *segmentStore) path(number int64) string {
	return filepath.Join(l.dir, fmt.Sprintf("%08d.segment", number))
}

// drop removes a segment; who reads it goes on.
func (l *segmentStore) drop(s *segment) error {
	delete(l.segments, s.number)
	if l.now == s {
		l.now = &segment{number: s.number, size: l.limit} // the next number
	}
	s.gone = true
	err := os.Remove(l.path(s.number))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.release(s, 0))
}

// release takes readers from a segment, which is closed when it is gone and no
// one reads it.
func (l *segmentStore) release(s *segment, readers int) error {
	if s.used -= readers; s.gone && s.used == 0 {
		return s.file.Close()
	}
	return nil
}

func (l *segmentStore) size(_ context.Context, jobID int64) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.load(); err != nil {
		return 0, err
	}
	if log := l.logs[jobID]; log != nil {
		return log.size, nil
	}
	return 0, nil
}

func (l *segmentStore) sum(_ context.Context, jobID int64) (int64, uint32, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if log := l.logs[jobID]; log != nil {
		return log.size, log.crc, true
	}
	return 0, 0, false
}

func (l *segmentStore) restart(_ context.Context, jobID int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.load(); err != nil || l.logs[jobID] == nil {
		return err
	}
	if _, err := l.write(record{jobID: jobID, kind: restartKind}, nil); err != nil {
		return err
	}
	l.again(jobID)
	var faults []error
	for _, s := range l.segments {
		if s.logs == 0 && s != l.now {
			faults = append(faults, l.drop(s))
		}
	}
	return errors.Join(faults...)
}

// again begins a log again: what was before its last beginning is forgotten.
func (l *segmentStore) again(jobID int64) {
	log := l.logs[jobID]
	was := holding(log)
	log.before = nil
	log = &segmentLog{before: log}
	l.logs[jobID] = log
	is := holding(log)
	for s := range was {
		if !is[s] {
			s.logs--
		}
	}
}

func (l *segmentStore) restarted(_ context.Context, jobID int64) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.load(); err != nil {
		return false, err
	}
	log := l.logs[jobID]
	return log != nil && log.before != nil, nil
}

func (l *segmentStore) open(_ context.Context, jobID int64, newest bool) (*Reader, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.load(); err != nil {
		return nil, err
	}
	log := l.logs[jobID]
	if log == nil {
		return nil, nil
	}
	if log.before != nil && log.before.size > log.size && !newest {
		log = log.before
	}
	pieces := pieceReader(log.pieces)
	held := slices.Collect(maps.Keys(holding(&segmentLog{pieces: pieces})))
	for _, s := range held {
		s.used++
	}
	return &Reader{&segmentReader{io.NewSectionReader(pieces, 0, log.size), sync.OnceValue(func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		var faults []error
		for _, s := range held {
			faults = append(faults, l.release(s, 1))
		}
		return errors.Join(faults...)
	})}, log.size}, nil
}

// segmentReader reads a log from segments, which are kept until it is closed.
type segmentReader struct {
	io.ReadSeeker
	close func() error
}

// Close implements io.Closer.
func (r *segmentReader) Close() error { return r.close() }

func (l *segmentStore) sync(_ context.Context, jobID int64) error {
	l.mu.Lock()
	if err := l.load(); err != nil {
		l.mu.Unlock()
		return err
	}
	ends := map[*segment]int64{}
	if log := l.logs[jobID]; log != nil {
		for _, p := range log.pieces {
			ends[p.in] = p.position + p.size
		}
	}
	for s := range ends {
		s.used++
	}
	l.mu.Unlock()
	var faults []error
	for s, end := range ends {
		faults = append(faults, s.sync(l, end))
		l.mu.Lock()
		faults = append(faults, l.release(s, 1))
		l.mu.Unlock()
	}
	return errors.Join(faults...)
}

// sync has the segment survive the machine up to a place. Of those who come
// while it is done, one does it for all.
func (s *segment) sync(l *segmentStore, end int64) error {
	s.syncing.Lock()
	defer s.syncing.Unlock()
	if s.synced >= end {
		return nil
	}
	l.mu.Lock()
	size := s.size
	l.mu.Unlock()
	first := s.synced == 0
	if err := s.file.Sync(); err != nil {
		return err
	}
	if first {
		if err := durable.SyncDir(l.dir); err != nil {
			return err
		}
	}
	s.synced = size
	return nil
}

func (l *segmentStore) remove(_ context.Context, jobID int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.load(); err != nil {
		return err
	}
	log := l.logs[jobID]
	if log == nil {
		return nil
	}
	delete(l.logs, jobID)
	var faults []error
	for s := range holding(log) {
		if s.logs--; s.logs == 0 {
			faults = append(faults, l.drop(s))
		}
	}
	// Where others stay it must not come back at the next start.
	for ; log != nil; log = log.before {
		for _, p := range log.pieces {
			if p.in.logs > 0 {
				_, err := p.in.file.WriteAt([]byte{removedKind}, p.position-1)
				faults = append(faults, err)
			}
		}
	}
	return errors.Join(faults...)
}

// holding are the segments that a log has something in.
func holding(log *segmentLog) map[*segment]bool {
	found := map[*segment]bool{}
	for ; log != nil; log = log.before {
		for _, p := range log.pieces {
			found[p.in] = true
		}
	}
	return found
}

func (l *segmentStore) jobs(context.Context) ([]int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.load(); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(l.logs)), nil
}

// pieceReader reads pieces as one.
type pieceReader []piece

// ReadAt reads from a place in the log.
func (r pieceReader) ReadAt(p []byte, at int64) (n int, err error) {
	i, found := slices.BinarySearchFunc(r, at, func(p piece, at int64) int { return cmp.Compare(p.at, at) })
	if !found {
		i--
	}
	for ; n < len(p) && i >= 0 && i < len(r); i++ {
		from := at + int64(n) - r[i].at
		if from >= r[i].size {
			break
		}
		part := p[n:min(len(p), n+int(r[i].size-from))]
		m, err := r[i].in.file.ReadAt(part, r[i].position+from)
		if n += m; err != nil {
			return n, fmt.Errorf("piece of a log: %w", err)
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
