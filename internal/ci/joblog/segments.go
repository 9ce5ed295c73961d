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

// segmentStore stores live logs in segment files that many jobs share. A job needs
// no file of its own, and jobs that end at the same time share one fsync.
//
// A segment is a sequence of records (see record) and is only appended to. The
// list of chunks of each log is kept in memory and rebuilt from the files at the
// first use. A segment is deleted when it holds no live log.
type segmentStore struct {
	dir   string
	limit int64 // a segment of this size is full

	mu       sync.Mutex
	loaded   bool
	logs     map[int64]*segmentLog
	segments map[int64]*segment
	current  *segment // the one that is appended to
	buf      []byte
}

// segmentSize is the size at which a segment is full.
const segmentSize = 32 << 20

// segment is an append-only file that holds chunks of many logs.
type segment struct {
	number int64
	file   *os.File
	size   int64
	logs   int  // live logs with chunks in it
	used   int  // readers
	gone   bool // deleted; it is closed with its last reader

	syncing sync.Mutex
	synced  int64 // bytes that were flushed to the disk
}

// segmentLog is the list of chunks of a live log.
type segmentLog struct {
	chunks   []chunk
	size     int64
	crc      uint32
	previous *segmentLog // the version before the last restart
}

// chunk is a part of a log in a segment.
type chunk struct {
	in       *segment
	at       int64 // offset in the log
	position int64 // offset of its content in the segment
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
	position, err := l.write(record{jobID: jobID, at: at, size: len(p), sum: crc32.ChecksumIEEE(p), kind: chunkKind}, p)
	if err != nil {
		return size, err
	}
	l.extend(jobID, chunk{l.current, at, position, int64(len(p))})
	log = l.logs[jobID]
	log.crc = crc32.Update(log.crc, crc32.IEEETable, p)
	return log.size, nil
}

// extend adds a chunk to the list of a log.
func (l *segmentStore) extend(jobID int64, p chunk) {
	log := l.logs[jobID]
	if log == nil {
		log = &segmentLog{}
		l.logs[jobID] = log
	}
	if !l.within(log, p.in) {
		p.in.logs++
	}
	log.chunks = append(log.chunks, p)
	log.size += p.size
}

// within reports whether a log has chunks in a segment. Only the last chunk is
// checked, because segments are filled one after the other.
func (l *segmentStore) within(log *segmentLog, in *segment) bool {
	for ; log != nil; log = log.previous {
		if n := len(log.chunks); n > 0 && log.chunks[n-1].in == in {
			return true
		}
	}
	return false
}

// write appends a record to the current segment and returns the offset of its
// content.
func (l *segmentStore) write(r record, content []byte) (int64, error) {
	if l.current == nil || l.current.size >= l.limit {
		if err := l.next(); err != nil {
			return 0, err
		}
	}
	l.buf = append(r.append(l.buf[:0]), content...)
	if _, err := l.current.file.WriteAt(l.buf, l.current.size); err != nil {
		// A partial record would end the segment at the next start.
		return 0, errors.Join(err, l.current.file.Truncate(l.current.size))
	}
	position := l.current.size + recordSize
	l.current.size += int64(len(l.buf))
	if cap(l.buf) > 1<<20 {
		l.buf = nil
	}
	return position, nil
}

// next creates the next segment.
func (l *segmentStore) next() error {
	number := int64(1)
	if l.current != nil {
		number = l.current.number + 1
	}
	f, err := os.OpenFile(l.path(number), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	old := l.current // without a file if it was deleted
	l.current = &segment{number: number, file: f}
	l.segments[number] = l.current
	if old != nil && old.file != nil && old.logs == 0 {
		return l.drop(old)
	}
	return nil
}

func (l *segmentStore) path(number int64) string {
	return filepath.Join(l.dir, fmt.Sprintf("%08d.segment", number))
}

// drop deletes a segment. Open readers can go on.
func (l *segmentStore) drop(s *segment) error {
	delete(l.segments, s.number)
	if l.current == s {
		l.current = &segment{number: s.number, size: l.limit} // so that the next segment gets the next number
	}
	s.gone = true
	err := os.Remove(l.path(s.number))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.release(s, 0))
}

// release subtracts readers of a segment, and closes it if it was deleted and has
// none left.
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
	l.startAgain(jobID)
	var faults []error
	for _, s := range l.segments {
		if s.logs == 0 && s != l.current {
			faults = append(faults, l.drop(s))
		}
	}
	return errors.Join(faults...)
}

// startAgain restarts a log in memory. The version before the previous restart is
// dropped.
func (l *segmentStore) startAgain(jobID int64) {
	log := l.logs[jobID]
	was := segmentsOf(log)
	log.previous = nil
	log = &segmentLog{previous: log}
	l.logs[jobID] = log
	is := segmentsOf(log)
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
	return log != nil && log.previous != nil, nil
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
	if log.previous != nil && log.previous.size > log.size && !newest {
		log = log.previous
	}
	chunks := chunksReader(log.chunks)
	held := slices.Collect(maps.Keys(segmentsOf(&segmentLog{chunks: chunks})))
	for _, s := range held {
		s.used++
	}
	return &Reader{&segmentReader{io.NewSectionReader(chunks, 0, log.size), sync.OnceValue(func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		var faults []error
		for _, s := range held {
			faults = append(faults, l.release(s, 1))
		}
		return errors.Join(faults...)
	})}, log.size}, nil
}

// segmentReader reads a log from its segments, which stay open until Close.
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
		for _, p := range log.chunks {
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

// sync flushes the segment up to an offset. Callers that wait for a running fsync
// share the next one.
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
	for s := range segmentsOf(log) {
		if s.logs--; s.logs == 0 {
			faults = append(faults, l.drop(s))
		}
	}
	// In segments that stay, its records are marked, so that the next start skips them.
	for ; log != nil; log = log.previous {
		for _, p := range log.chunks {
			if p.in.logs > 0 {
				_, err := p.in.file.WriteAt([]byte{removedKind}, p.position-1)
				faults = append(faults, err)
			}
		}
	}
	return errors.Join(faults...)
}

// segmentsOf returns the segments with chunks of a log and its previous version.
func segmentsOf(log *segmentLog) map[*segment]bool {
	found := map[*segment]bool{}
	for ; log != nil; log = log.previous {
		for _, p := range log.chunks {
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

// chunksReader reads the chunks of a log as one file.
type chunksReader []chunk

// ReadAt implements io.ReaderAt.
func (r chunksReader) ReadAt(p []byte, at int64) (n int, err error) {
	i, found := slices.BinarySearchFunc(r, at, func(p chunk, at int64) int { return cmp.Compare(p.at, at) })
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
			return n, fmt.Errorf("log chunk: %w", err)
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
