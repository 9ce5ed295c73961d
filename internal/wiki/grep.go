package wiki

import (
	"context"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/repo"
)

// Grep searches the pages of a wiki, for users who may read it. NotFound; Invalid
// for a text that is too long; Unavailable if the search takes too long.
func (s *Service) Grep(ctx context.Context, by actor.Actor, at project.Place, f repo.GrepFilter, p db.Paging) (*Wiki, db.Page[repo.FileHit], error) {
	none := db.Page[repo.FileHit]{Items: []repo.FileHit{}}
	w, err := s.Wiki(ctx, by, at)
	if err != nil {
		return nil, none, err
	}
	r, ok, err := s.files(ctx, w)
	if err != nil || !ok {
		return w, none, err
	}
	commit, err := r.ResolveCommit(ctx, "HEAD")
	if err != nil {
		return nil, none, repo.Missing(err, "Wiki Page")
	}
	branch, err := r.DefaultBranch(ctx)
	if err != nil {
		return nil, none, repo.Missing(err, "Wiki Page")
	}
	keep := f.Keep
	f.Keep = func(path string) bool {
		_, page := pageOf(path)
		return page && (keep == nil || keep(path))
	}
	found, err := repo.GrepIn(ctx, r, commit, branch, f, p)
	return w, found, err
}

// SlugOf returns the slug of the page that a file is; empty for other files.
func SlugOf(path string) string {
	p, _ := pageOf(path)
	return p.Slug
}
