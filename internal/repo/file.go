package repo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// File is a file in a revision.
type File struct {
	Name         string
	Path         string
	Size         int64
	SHA256       string // of the content
	Ref          string // as it was asked for
	BlobID       git.OID
	CommitID     git.OID
	LastCommitID git.OID // the newest that touched it
	Executable   bool

	repo git.Repo
}

// File finds a file, for those who read the project's code. An empty ref is
// HEAD. NotFound of the commit or of the file.
func (s *Service) File(ctx context.Context, by actor.Actor, in project.Ref, path, ref string) (*File, error) {
	_, r, err := s.read(ctx, by, in)
	if err != nil {
		return nil, err
	}
	if ref == "" {
		ref = "HEAD"
	}
	path = strings.TrimPrefix(path, "/")
	commit, err := r.ResolveCommit(ctx, ref)
	if err != nil {
		return nil, missing(err, "Commit")
	}
	entry, err := r.Entry(ctx, string(commit), path)
	if err != nil {
		return nil, missing(err, "File")
	}
	if entry.Type != git.TypeBlob {
		return nil, errs.NotFound("File")
	}
	f := &File{Name: entry.Name, Path: path, Ref: ref, BlobID: entry.OID, CommitID: commit, Executable: entry.Mode == "100755", repo: r}
	// The history is searched by a process of its own, so both go on at once.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	searched := make(chan error, 1)
	go func() {
		var err error
		f.LastCommitID, err = lastCommit(ctx, r, string(commit), path)
		searched <- err
	}()
	err = f.measure(ctx)
	if err != nil {
		cancel()
	}
	if failed := <-searched; err == nil {
		err = failed
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// measure finds what there is to tell of the content.
func (f *File) measure(ctx context.Context) error {
	info, err := f.repo.Info(ctx, f.BlobID)
	if err != nil {
		return missing(err, "File")
	}
	f.Size = info.Size
	if f.SHA256, err = f.repo.Digest(ctx, f.BlobID); err != nil {
		return fmt.Errorf("digest of %s: %w", f.BlobID, passing(err))
	}
	return nil
}

// Open gives the content as a stream.
func (f *File) Open(ctx context.Context) (*git.Content, error) {
	content, err := f.repo.Open(ctx, f.BlobID)
	if err != nil {
		return nil, fmt.Errorf("open blob %s: %w", f.BlobID, passing(err))
	}
	return content, nil
}

// Blame tells for the lines of a file, from first to last or all for zeros,
// which commit they come from, for those who read the project's code. Lines
// that are not there are left out. NotFound; Invalid for a file that is too
// large.
func (s *Service) Blame(ctx context.Context, by actor.Actor, in project.Ref, path, ref string, first, last int) (*File, []git.BlameRange, error) {
	f, err := s.File(ctx, by, in, path, ref)
	if err != nil {
		return nil, nil, err
	}
	ranges, err := f.repo.Blame(ctx, git.BlameOptions{Rev: string(f.CommitID), Path: f.Path, From: first, To: last})
	switch {
	case errors.Is(err, git.ErrNotFound): // the file is there, so the lines are not
		return f, nil, nil
	case errors.Is(err, git.ErrTooLarge):
		return nil, nil, errs.Invalid("The file is too large for blame.").Because(err)
	case err != nil:
		return nil, nil, fmt.Errorf("blame: %w", passing(err))
	}
	return f, ranges, nil
}
