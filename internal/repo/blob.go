package repo

import (
	"context"
	"io"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// Blob is a git blob: the content of a file without its name.
type Blob struct {
	ID   git.OID
	Size int64
	repo git.Repo
}

// Blob finds a blob by its ID, for users who may read the repository. NotFound.
func (s *Service) Blob(ctx context.Context, by actor.Actor, ref project.Ref, id string) (*Blob, error) {
	_, r, err := s.read(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	found, kind, err := r.Resolve(ctx, id)
	if err != nil {
		return nil, missing(err, "Blob")
	}
	if kind != git.TypeBlob {
		return nil, errs.NotFound("Blob")
	}
	info, err := r.Info(ctx, found)
	if err != nil {
		return nil, missing(err, "Blob")
	}
	return &Blob{info.OID, info.Size, r.Whole()}, nil
}

// Open returns the content as a stream that ends with ctx.
func (b *Blob) Open(ctx context.Context) (io.ReadCloser, error) {
	content, err := b.repo.Open(ctx, b.ID)
	if err != nil {
		return nil, missing(err, "Blob")
	}
	return content, nil
}
