package artifact

import (
	"archive/zip"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"svc/internal/blob"
	"svc/internal/errs"
)

// Entry is a file of an archive. The caller closes it.
type Entry struct {
	Name    string
	Size    int64
	ModTime time.Time
	io.ReadCloser
}

// OpenEntry opens one file of the archive of a job, without unpacking the others.
// NotFound; Unprocessable if the archive cannot be read, also when the content is read.
func (s *Service) OpenEntry(ctx context.Context, jobID int64, name string) (*Entry, error) {
	name = path.Clean(strings.TrimPrefix(name, "/"))
	if !fs.ValidPath(name) || name == "." {
		return nil, errs.Invalid("the path is invalid")
	}
	r, _, err := s.ReadArchive(ctx, jobID)
	if err != nil {
		return nil, err
	}
	e, err := r.Find(name, false)
	if err != nil {
		return nil, missing(err)
	}
	content, err := r.Open(e)
	if err != nil {
		return nil, fmt.Errorf("artifacts of job %d: %w", jobID, Unreadable(err))
	}
	return &Entry{Name: path.Base(name), Size: e.Size, ModTime: e.ModTime, ReadCloser: entryReader{content}}, nil
}

// Unreadable converts the errors of an archive that is damaged or forged to
// Unprocessable. It returns other errors as they are.
func Unreadable(err error) error {
	if errors.Is(err, zip.ErrFormat) || errors.Is(err, zip.ErrAlgorithm) || errors.Is(err, zip.ErrChecksum) {
		return errs.Unprocessable("The file cannot be read out of the archive").Because(err)
	}
	return err
}

// entryReader reads the content of an Entry.
type entryReader struct{ io.ReadCloser }

// Read implements io.Reader. Unprocessable if the archive is damaged or forged.
func (r entryReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	return n, Unreadable(err)
}

// rangeReader reads an object in blocks, because archives are mostly read forward.
type rangeReader struct {
	ctx   context.Context
	store blob.Store
	key   string
	size  int64
	block int64 // size of a block; 0 stands for rangeBlock

	at   int64
	have []byte
}

const (
	rangeBlock = 256 << 10
	indexBlock = 16 << 10 // of an index, which is read at random
)

// ReadAt implements io.ReaderAt. It is for one goroutine.
func (r *rangeReader) ReadAt(p []byte, at int64) (int, error) {
	done := 0
	for done < len(p) {
		if at >= r.size {
			return done, io.EOF
		}
		if at < r.at || at >= r.at+int64(len(r.have)) {
			if err := r.fetch(at); err != nil {
				return done, err
			}
		}
		n := copy(p[done:], r.have[at-r.at:])
		done, at = done+n, at+int64(n)
	}
	return done, nil
}

func (r *rangeReader) fetch(at int64) error {
	block := r.block
	if block == 0 {
		block = rangeBlock
	}
	part, err := r.store.GetRange(r.ctx, r.key, at, block)
	if err != nil {
		return err
	}
	have, err := io.ReadAll(io.LimitReader(part, block))
	if err = errors.Join(err, part.Close()); err != nil {
		return err
	}
	if len(have) == 0 {
		return io.ErrUnexpectedEOF
	}
	r.at, r.have = at, have
	return nil
}

// openPlain opens a report uncompressed, up to a limit. Invalid if it cannot be
// decompressed.
func (s *Service) openPlain(ctx context.Context, a *File, limit int64) (io.ReadCloser, error) {
	o, err := s.Blobs.Get(ctx, a.blob)
	if err != nil {
		return nil, err
	}
	var in io.Reader = o
	if a.Format == Gzip {
		if in, err = gzip.NewReader(o); err != nil {
			return nil, errors.Join(errs.Invalid("The file is not in gzip format").Because(err), o.Close())
		}
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(in, limit), o}, nil
}
