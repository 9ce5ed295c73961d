package repo

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// RefNames lists the names of branches or tags that contain a text, ignoring
// case, for users who can read the code. The default branch comes first, then
// names that equal the text, names that start with it, and the others. No commit
// is read, so that lists of many thousand refs are fast.
func (s *Service) RefNames(ctx context.Context, by actor.Actor, ref project.Ref, kind RefKind, text string, pg db.Paging) (db.Page[string], error) {
	page := db.Page[string]{Items: []string{}}
	p, r, err := s.read(ctx, by, ref)
	if err != nil {
		return page, err
	}
	place := git.Heads
	if kind == TagRef {
		place = git.Tags
	}
	text = strings.ToLower(text)
	names, err := r.RefNames(ctx, place, func(name string) bool { return strings.Contains(strings.ToLower(name), text) })
	if errors.Is(err, git.ErrNoRepository) {
		return page, nil
	}
	if err != nil {
		return page, passing(err)
	}
	for i, name := range names {
		names[i] = strings.TrimPrefix(name, place)
	}
	rank := func(name string) int {
		low := strings.ToLower(name)
		switch {
		case low == text:
			return 0
		case kind == BranchRef && name == p.DefaultBranch:
			return 1
		case strings.HasPrefix(low, text):
			return 2
		}
		return 3
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	page.Total = len(names)
	names = names[min(pg.Offset, len(names)):]
	page.Items, page.More = append(page.Items, names[:min(pg.Limit, len(names))]...), len(names) > pg.Limit
	return page, nil
}

// PathType returns the type of the entry that a path names in a revision, for
// users who can read the code. NotFound.
func (s *Service) PathType(ctx context.Context, by actor.Actor, ref project.Ref, rev, path string) (git.Type, error) {
	_, r, err := s.read(ctx, by, ref)
	if err != nil {
		return "", err
	}
	e, err := r.Entry(ctx, rev, strings.Trim(path, "/"))
	if errors.Is(err, git.ErrBadPath) {
		return "", errs.NotFound("Path")
	}
	return e.Type, missing(err, "Path")
}
