package ci

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

// noIndex begins the object that stands in for the index of an archive that has
// none. The reason follows, for those who look for a file.
const noIndex = "no index\n"

const unreadable = "The archive cannot be read"

// indexArchive stores the index of an archive that was stored, under the name
// that public clients know for the list of its files. It is nil when the archive
// cannot be read: it is kept as it is then.
func (s *Service) indexArchive(ctx context.Context, file *Artifact) (*Artifact, error) {
	form := artifactForms()[MetadataFile]
	index := &Artifact{
		JobID: file.JobID, ProjectID: file.ProjectID, Kind: MetadataFile, Format: form.format, Filename: form.name,
		ExpiresAt: file.ExpiresAt, CreatedAt: s.Now(), blob: artifactKey(file.JobID, file.ProjectID, MetadataFile),
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
	err := s.storeArtifact(ctx, index, out)
	_ = out.Close() // ends the writer, if the store gave up
	cause := <-written
	if limit, ok := errors.AsType[*archive.LimitError](cause); ok {
		// The key may hold a part of the index.
		if err := s.dropUpload(context.WithoutCancel(ctx), index.blob); err != nil {
			return nil, err
		}
		index.blob = artifactKey(file.JobID, file.ProjectID, MetadataFile)
		return index, s.storeArtifact(ctx, index, strings.NewReader(noIndex+limit.Reason))
	}
	if errors.Is(cause, zip.ErrFormat) {
		return nil, s.dropUpload(context.WithoutCancel(ctx), index.blob)
	}
	if cause != nil && !errors.Is(cause, io.ErrClosedPipe) {
		err = cause
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("index archive: %w", err), s.dropUpload(context.WithoutCancel(ctx), index.blob))
	}
	return index, nil
}

// openArchiveOf opens the archive of a job by its index. NotFound; Unprocessable
// when the archive has no index. It is for one goroutine, while ctx lasts.
func (s *Service) openArchiveOf(ctx context.Context, jobID int64) (*archive.Reader, *Artifact, error) {
	file, err := findArtifact(ctx, s.DB, jobID, ArchiveFile)
	if err != nil {
		return nil, nil, err
	}
	index, err := findArtifact(ctx, s.DB, jobID, MetadataFile)
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

// openIndex opens an index: Unprocessable for what stands in for one.
func (s *Service) openIndex(ctx context.Context, index *Artifact) (*archive.Tree, error) {
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

// replaceIndex makes the index of an archive that has a list of another form.
func (s *Service) replaceIndex(ctx context.Context, file, old *Artifact) (*Artifact, error) {
	index, err := s.indexArchive(ctx, file)
	if err != nil {
		return nil, err
	}
	if index == nil {
		return nil, errs.Unprocessable(unreadable)
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := replaceArtifact(ctx, tx, old, index); err != nil {
			return err
		}
		if err := deleteUpload(ctx, tx, index.blob); err != nil {
			return err
		}
		return insertUpload(ctx, tx, old.blob, s.Now().Add(-uploadTime)) // so that it is removed
	})
	if errors.Is(err, db.ErrNoRows) { // another request was faster
		if err := s.dropUpload(ctx, index.blob); err != nil {
			return nil, err
		}
		return findArtifact(ctx, s.DB, file.JobID, MetadataFile)
	}
	return index, err
}

// missing turns an entry that an archive does not have into NotFound.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errs.NotFound("")
	}
	return err
}

// gate lets one piece of expensive work in at a time.
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
