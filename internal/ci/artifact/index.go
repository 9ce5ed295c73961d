package artifact

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"svc/internal/ci/archive"
	"svc/internal/db"
	"svc/internal/errs"
)

// noIndex is the start of the object that is stored instead of an index if an archive
// exceeds a limit. The reason follows it.
const noIndex = "no index\n"

const unreadable = "The archive cannot be read"

// indexArchive stores the index of an archive as the job's file of kind metadata. It
// returns nil if the archive cannot be read; the archive is kept.
func (s *Service) indexArchive(ctx context.Context, file *File) (*File, error) {
	f := forms()[Metadata]
	index := &File{
		JobID: file.JobID, ProjectID: file.ProjectID, Kind: Metadata, Format: f.format, Filename: f.name,
		ExpiresAt: file.ExpiresAt, CreatedAt: s.Now(), blob: newKey(file.JobID, file.ProjectID, Metadata),
	}
	if err := s.indexing.enter(ctx); err != nil {
		return nil, err
	}
	defer s.indexing.leave()
	in := &rangeReader{ctx: ctx, store: s.Blobs, key: file.blob, size: file.Size}
	out, to := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := archive.WriteIndex(ctx, to, in, file.Size)
		written <- err
		to.CloseWithError(err)
	}()
	err := s.put(ctx, index, out)
	_ = out.Close() // ends the writer if the store has failed
	cause := <-written
	if limit, ok := errors.AsType[*archive.LimitError](cause); ok {
		// The key may hold a part of the index.
		if err := s.dropUploads(ctx, index.blob); err != nil {
			return nil, err
		}
		index.blob = newKey(file.JobID, file.ProjectID, Metadata)
		return index, s.put(ctx, index, strings.NewReader(noIndex+limit.Reason))
	}
	if errors.Is(cause, zip.ErrFormat) {
		return nil, s.dropUploads(ctx, index.blob)
	}
	if cause != nil && !errors.Is(cause, io.ErrClosedPipe) {
		err = cause
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("index archive: %w", err), s.dropUploads(ctx, index.blob))
	}
	return index, nil
}

// ReadArchive opens the archive of a job by its index. NotFound; Unprocessable if the
// archive has no index. The reader is for one goroutine, while ctx lasts.
func (s *Service) ReadArchive(ctx context.Context, jobID int64) (*archive.Reader, *File, error) {
	file, err := find(ctx, s.DB, jobID, Archive)
	if err != nil {
		return nil, nil, err
	}
	index, err := find(ctx, s.DB, jobID, Metadata)
	if errs.Is(err, errs.KindNotFound) {
		return nil, nil, errs.Unprocessable(unreadable)
	}
	if err != nil {
		return nil, nil, err
	}
	tree, err := s.openIndex(ctx, index)
	if errors.Is(err, archive.ErrIndex) { // of an older version
		if index, err = s.replaceIndex(ctx, file, index); err == nil {
			tree, err = s.openIndex(ctx, index)
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("artifacts of job %d: %w", jobID, err)
	}
	in := &rangeReader{ctx: ctx, store: s.Blobs, key: file.blob, size: file.Size}
	return &archive.Reader{Tree: tree, In: in, Size: file.Size}, file, nil
}

// openIndex opens an index. Unprocessable if the archive has none.
func (s *Service) openIndex(ctx context.Context, index *File) (*archive.Tree, error) {
	part := func() io.ReaderAt {
		return &rangeReader{ctx: ctx, store: s.Blobs, key: index.blob, size: index.Size, block: indexBlock}
	}
	if index.Size < 1<<10 {
		text := make([]byte, index.Size)
		if _, err := part().ReadAt(text, 0); err != nil && err != io.EOF {
			return nil, err
		}
		if reason, ok := strings.CutPrefix(string(text), noIndex); ok {
			return nil, errs.Unprocessable("%s; download it whole", reason)
		}
	}
	return archive.OpenIndex(part(), part(), index.Size)
}

// replaceIndex replaces an index that has the format of an older version.
func (s *Service) replaceIndex(ctx context.Context, file, old *File) (*File, error) {
	index, err := s.indexArchive(ctx, file)
	if err != nil {
		return nil, err
	}
	if index == nil {
		return nil, errs.Unprocessable(unreadable)
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := replace(ctx, tx, old, index); err != nil {
			return err
		}
		if err := deleteUpload(ctx, tx, index.blob); err != nil {
			return err
		}
		return insertUpload(ctx, tx, old.blob, s.Now().Add(-uploadTime)) // so that it is removed
	})
	if errors.Is(err, db.ErrNoRows) { // another request was faster
		if err := s.dropUploads(ctx, index.blob); err != nil {
			return nil, err
		}
		return find(ctx, s.DB, file.JobID, Metadata)
	}
	return index, err
}

// missing converts fs.ErrNotExist to NotFound.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errs.NotFound("")
	}
	return err
}

// gate is a lock whose wait ends with the context.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

func (g gate) enter(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g gate) leave() { <-g }
