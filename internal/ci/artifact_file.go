package ci

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

	"svc/internal/actor"
	"svc/internal/blob"
	"svc/internal/ci/archive"
	"svc/internal/errs"
	"svc/internal/project"
)

// ArchiveEntry is a file out of an archive; the caller closes it.
type ArchiveEntry struct {
	Name    string
	Size    int64
	ModTime time.Time
	io.ReadCloser
}

// ArtifactEntry returns one file out of the archive of a job, without unpacking
// the others, for those who may read its artifacts. NotFound.
func (s *Service) ArtifactEntry(ctx context.Context, by actor.Actor, ref project.Ref, jobID int64, name string) (*ArchiveEntry, error) {
	j, err := s.artifactJob(ctx, by, ref, jobID)
	if err != nil {
		return nil, err
	}
	return s.openEntry(ctx, j, name)
}

// ArtifactEntryAt is ArtifactEntry for the job that ArchiveAt finds.
func (s *Service) ArtifactEntryAt(ctx context.Context, by actor.Actor, ref project.Ref, at, job, name string) (*ArchiveEntry, error) {
	j, err := s.artifactJobAt(ctx, by, ref, at, job)
	if err != nil {
		return nil, err
	}
	return s.openEntry(ctx, j, name)
}

// ReadArchive opens the archive of a job by its index, for another feature that
// works with what jobs leave behind; it checks no rights. It is for one goroutine,
// while ctx lasts. NotFound; Unprocessable when it is no archive that can be read.
func (s *Service) ReadArchive(ctx context.Context, jobID int64) (*archive.Reader, error) {
	r, _, err := s.openArchiveOf(ctx, jobID)
	return r, err
}

// openEntry finds a file in the archive of a job.
func (s *Service) openEntry(ctx context.Context, j *Job, name string) (*ArchiveEntry, error) {
	name = path.Clean(strings.TrimPrefix(name, "/"))
	if !fs.ValidPath(name) || name == "." {
		return nil, errs.Invalid("the path is invalid")
	}
	r, _, err := s.openArchiveOf(ctx, j.ID)
	if err != nil {
		return nil, err
	}
	e, err := r.Find(name, false)
	if err != nil {
		return nil, missing(err)
	}
	content, err := r.Open(e)
	if errors.Is(err, zip.ErrFormat) || errors.Is(err, zip.ErrAlgorithm) {
		return nil, errs.Unprocessable("The file cannot be read out of the archive").Because(err)
	}
	if err != nil {
		return nil, fmt.Errorf("artifacts of job %d: %w", j.ID, err)
	}
	return &ArchiveEntry{Name: path.Base(name), Size: e.Size, ModTime: e.ModTime, ReadCloser: content}, nil
}

// rangeReader reads parts of an object. What comes after a part that was read
// is fetched along, because an archive is mostly read forward.
type rangeReader struct {
	ctx   context.Context
	store blob.Store
	key   string
	size  int64
	block int64 // bytes that are fetched at once; 0 stands for rangeBlock

	at   int64
	have []byte
}

const (
	rangeBlock = 256 << 10
	indexBlock = 16 << 10 // of an index, which is read here and there
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

// openPlain opens a report unpacked, up to so many bytes.
func (s *Service) openPlain(ctx context.Context, a *Artifact, limit int64) (io.ReadCloser, error) {
	o, err := s.Blobs.Get(ctx, a.blob)
	if err != nil {
		return nil, err
	}
	var in io.Reader = o
	if a.Format == GzipFormat {
		if in, err = gzip.NewReader(o); err != nil {
			return nil, errors.Join(errs.Invalid("The file is not in gzip format").Because(err), o.Close())
		}
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(in, limit), o}, nil
}
