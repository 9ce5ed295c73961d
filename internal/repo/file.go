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

// FileBlob is the content of a file in a revision, with its tree entry.
type FileBlob struct {
	Name       string
	Path       string
	Size       int64
	Ref        string // as requested
	BlobID     git.OID
	CommitID   git.OID
	Executable bool
	Project    *project.Project

	repo git.Repo
}

// File is a file in a revision, with its last commit.
type File struct {
	FileBlob
	SHA256       string  // of the content
	LastCommitID git.OID // last commit of the file
}

// FileBlob finds a file without reading its content or history, for users who
// can read the code of the project. An empty ref is HEAD. NotFound if the
// commit or the file does not exist.
func (s *Service) FileBlob(ctx context.Context, by actor.Actor, in project.Ref, path, ref string) (*FileBlob, error) {
	p, r, commit, err := s.commitOf(ctx, by, in, &ref)
	if err != nil {
		return nil, err
	}
	return fileBlob(ctx, p, r, commit, path, ref)
}

// commitOf resolves the commit of a file that an actor may read.
func (s *Service) commitOf(ctx context.Context, by actor.Actor, in project.Ref, ref *string) (*project.Project, git.Repo, git.OID, error) {
	p, r, err := s.read(ctx, by, in)
	if err != nil {
		return nil, git.Repo{}, "", err
	}
	if *ref == "" {
		*ref = "HEAD"
	}
	commit, err := r.ResolveCommit(ctx, *ref)
	return p, r, commit, missing(err, "Commit")
}

func fileBlob(ctx context.Context, p *project.Project, r git.Repo, commit git.OID, path, ref string) (*FileBlob, error) {
	path = strings.TrimPrefix(path, "/")
	entry, err := r.Entry(ctx, string(commit), path)
	if err != nil {
		return nil, missing(err, "File")
	}
	if entry.Type != git.TypeBlob {
		return nil, errs.NotFound("File")
	}
	info, err := r.Info(ctx, entry.OID)
	if err != nil {
		return nil, missing(err, "File")
	}
	return &FileBlob{
		Name: entry.Name, Path: path, Size: info.Size, Ref: ref, BlobID: entry.OID, CommitID: commit, Executable: entry.Mode == "100755", Project: p, repo: r.Whole(),
	}, nil
}

// File is FileBlob with the checksum and the last commit. The result is cached
// by commit.
func (s *Service) File(ctx context.Context, by actor.Actor, in project.Ref, path, ref string) (*File, error) {
	p, r, commit, err := s.commitOf(ctx, by, in, &ref)
	if err != nil {
		return nil, err
	}
	name := "file " + string(commit) + " " + path
	if kept, ok := r.Kept(name); ok {
		f := *kept.(*File)
		f.Ref, f.Project = ref, p
		return &f, nil
	}
	found, err := fileBlob(ctx, p, r, commit, path, ref)
	if err != nil {
		return nil, err
	}
	f := &File{FileBlob: *found}
	// The history is searched by a separate process, concurrently.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	searched := make(chan error, 1)
	go func() {
		var err error
		f.LastCommitID, err = lastCommit(ctx, r, string(commit), f.Path)
		searched <- err
	}()
	if f.SHA256, err = r.Digest(ctx, f.BlobID); err != nil {
		err = fmt.Errorf("digest of %s: %w", f.BlobID, passing(err))
		cancel()
	}
	if failed := <-searched; err == nil {
		err = failed
	}
	if err != nil {
		return nil, err
	}
	kept := *f
	kept.Project = nil // it may change
	r.Keep(name, &kept, 400+2*len(path))
	return f, nil
}

// Open returns the content as a stream.
func (f *FileBlob) Open(ctx context.Context) (*git.Content, error) {
	content, err := f.repo.Open(ctx, f.BlobID)
	if err != nil {
		return nil, fmt.Errorf("open blob %s: %w", f.BlobID, passing(err))
	}
	return content, nil
}

// Blame returns the commit of each line of a file, from first to last or all for
// zeros. The actor must be able to read the project's code. Missing lines are
// left out. NotFound; Invalid for a file that is too large.
func (s *Service) Blame(ctx context.Context, by actor.Actor, in project.Ref, path, ref string, first, last int) (*File, []git.BlameRange, error) {
	f, err := s.File(ctx, by, in, path, ref)
	if err != nil {
		return nil, nil, err
	}
	ranges, err := f.repo.Blame(ctx, git.BlameOptions{Rev: string(f.CommitID), Path: f.Path, From: first, To: last})
	switch {
	case errors.Is(err, git.ErrNotFound): // the file exists, so the lines do not
		return f, nil, nil
	case errors.Is(err, git.ErrTooLarge):
		return nil, nil, errs.Invalid("The file is too large for blame.").Because(err)
	case err != nil:
		return nil, nil, fmt.Errorf("blame: %w", passing(err))
	}
	return f, ranges, nil
}
