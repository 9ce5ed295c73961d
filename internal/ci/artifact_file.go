package ci

import (
	"archive/zip"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/blob"
	"svc/internal/errs"
	"svc/internal/project"
)

// ArchiveEntry is a file out of an archive; it is closed by who has it.
type ArchiveEntry struct {
	Name    string
	Size    int64
	ModTime time.Time
	io.ReadCloser
}

// ArtifactEntry gives one file out of the archive of a job, without unpacking
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

// ReadArchive opens the archive of a job of which only the list of files is
// read at once, for a later feature that works with what jobs leave behind; it
// asks nobody who he is. It is for one goroutine, while ctx lasts. NotFound;
// Unprocessable when it is no archive that can be read.
func (s *Service) ReadArchive(ctx context.Context, jobID int64) (*zip.Reader, error) {
	a, err := findArtifact(ctx, s.DB, jobID, ArchiveFile)
	if err != nil {
		return nil, err
	}
	r, err := openZip(ctx, s.Blobs, a)
	if err != nil {
		return nil, fmt.Errorf("artifacts of job %d: %w", jobID, err)
	}
	return r, nil
}

// openEntry finds a file in the archive of a job.
func (s *Service) openEntry(ctx context.Context, j *Job, name string) (*ArchiveEntry, error) {
	a, err := findArtifact(ctx, s.DB, j.ID, ArchiveFile)
	if err != nil {
		return nil, err
	}
	name = path.Clean(strings.TrimPrefix(name, "/"))
	if !fs.ValidPath(name) || name == "." {
		return nil, errs.Invalid("the path is invalid")
	}
	r, err := openZip(ctx, s.Blobs, a)
	if err != nil {
		return nil, fmt.Errorf("artifacts of job %d: %w", j.ID, err)
	}
	for _, f := range r.File {
		if f.Name != name || f.Mode().IsDir() {
			continue
		}
		content, err := f.Open()
		if err != nil {
			return nil, fmt.Errorf("artifacts of job %d: %w", j.ID, err)
		}
		return &ArchiveEntry{Name: path.Base(name), Size: int64(f.UncompressedSize64), ModTime: f.Modified, ReadCloser: content}, nil
	}
	return nil, errs.NotFound("")
}

// maxDirectory is the size up to which the list of files of an archive is
// read: it is held in memory.
const maxDirectory = 32 << 20

// openZip opens an archive in the store. Only its end is read, where the list
// of its files stands.
func openZip(ctx context.Context, store blob.Store, a *Artifact) (*zip.Reader, error) {
	in := &rangeReader{ctx: ctx, store: store, key: a.blob, size: a.Size}
	size, err := zipDirectory(in, a.Size)
	if err != nil {
		return nil, errs.Unprocessable("The archive can not be read").Because(err)
	}
	if size > maxDirectory {
		return nil, errs.Unprocessable("The archive holds too many files to look for one; download it whole")
	}
	r, err := zip.NewReader(in, a.Size)
	if errors.Is(err, zip.ErrInsecurePath) { // we write nothing by these names
		err = nil
	}
	if err != nil {
		return nil, errs.Unprocessable("The archive can not be read").Because(err)
	}
	return r, nil
}

// zipDirectory is the size of the list of files, as the end of an archive
// tells it.
func zipDirectory(in io.ReaderAt, size int64) (int64, error) {
	const end, end64, locator = 22, 56, 20
	n := min(size, 64<<10+end)
	tail := make([]byte, n)
	if _, err := in.ReadAt(tail, size-n); err != nil && err != io.EOF {
		return 0, err
	}
	for i := len(tail) - end; i >= 0; i-- {
		if binary.LittleEndian.Uint32(tail[i:]) != 0x06054b50 {
			continue
		}
		length := int64(binary.LittleEndian.Uint32(tail[i+12:]))
		if length != 0xffffffff || i < locator || binary.LittleEndian.Uint32(tail[i-locator:]) != 0x07064b50 {
			return length, nil
		}
		at := int64(binary.LittleEndian.Uint64(tail[i-locator+8:]))
		head := make([]byte, end64)
		if at < 0 || at > size-end64 {
			return 0, zip.ErrFormat
		}
		if _, err := in.ReadAt(head, at); err != nil {
			return 0, err
		}
		if length = int64(binary.LittleEndian.Uint64(head[40:])); length < 0 {
			return 0, zip.ErrFormat
		}
		return length, nil
	}
	return 0, zip.ErrFormat
}

// rangeReader reads parts of an object. What comes after a part that was read
// is fetched along, because an archive is mostly read forward.
type rangeReader struct {
	ctx   context.Context
	store blob.Store
	key   string
	size  int64

	at   int64
	have []byte
}

const rangeBlock = 256 << 10

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
	part, err := r.store.GetRange(r.ctx, r.key, at, rangeBlock)
	if err != nil {
		return err
	}
	have, err := io.ReadAll(io.LimitReader(part, rangeBlock))
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
