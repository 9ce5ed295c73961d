package wiki

import (
	"context"
	"errors"
	"fmt"

	"svc/internal/activity"
	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/repo"
)

// TargetType is the target type of a wiki page in events.
const TargetType = "WikiPage::Meta"

// maxEvents is the maximum number of pages of a push for which events are
// recorded.
const maxEvents = 100

// changed is a page that a push changed.
type changed struct {
	Page
	was  string // its slug before, if it has another one now
	what activity.Action
}

// follow returns a function that records the page changes of a push.
func (s *Service) follow(ctx context.Context, p repo.AuxRepoPush) (func(context.Context, *db.Tx) error, error) {
	var list []changed
	var err error
	for _, c := range p.Changes {
		if c.Ref != git.Heads+p.Branch || c.New == git.ZeroOID {
			continue
		}
		if list, err = changes(ctx, p.Repo, c); err != nil {
			return nil, err
		}
	}
	in, err := s.projectOf(ctx, p.AuxRepo)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, tx *db.Tx) error {
		for _, c := range list {
			if err := recordPage(ctx, tx, p, c); err != nil {
				return err
			}
			if err := s.Events.PageChanged.Publish(ctx, tx, c.change(p)); err != nil {
				return err
			}
		}
		if in == nil {
			return nil
		}
		return project.Touch(ctx, tx, in, p.At)
	}, nil
}

// PageChange is a change of a push to a page.
type PageChange struct {
	Page                   // its title, slug, format and path
	AuxRepo  *repo.AuxRepo // of the wiki
	Done     activity.Action
	By       int64
	SHA, Old string // the commits after and before the push
}

func (c changed) change(p repo.AuxRepoPush) PageChange {
	done := PageChange{Page: c.Page, AuxRepo: p.AuxRepo, Done: c.what, By: p.By.ID}
	for _, push := range p.Changes {
		done.SHA, done.Old = string(push.New), string(push.Old)
	}
	return done
}

// PageAt returns the text of a file of a wiki in a commit, and the message of the
// commit, for other features. NotFound.
func (s *Service) PageAt(ctx context.Context, projectID, namespaceID *int64, sha, slug string) (text, message string, err error) {
	a, err := s.Repos.WikiOf(ctx, projectID, namespaceID)
	if err != nil || a == nil {
		return "", "", errOrNotFound(err)
	}
	r, err := s.Repos.OpenAuxRepo(a)
	if err != nil {
		return "", "", err
	}
	c, err := r.Commit(ctx, sha)
	if err != nil {
		return "", "", repo.Missing(err, "Commit")
	}
	p, err := find(ctx, r, sha, slug)
	if err != nil || p == nil { // the commit has deleted it
		return "", c.Message, err
	}
	err = read(ctx, r, p)
	return p.Content, c.Message, err
}

func errOrNotFound(err error) error {
	if err != nil {
		return err
	}
	return errs.NotFound("Wiki")
}

// projectOf returns the project of a wiki, or nil for the wiki of a group or a
// deleted project.
func (s *Service) projectOf(ctx context.Context, a *repo.AuxRepo) (*project.Project, error) {
	if a.ProjectID == nil {
		return nil, nil
	}
	p, err := s.Projects.Require(ctx, actor.System(), project.RefTo(*a.ProjectID), project.NoAccess)
	if errs.Is(err, errs.KindNotFound) {
		return nil, nil
	}
	return p, err
}

// changes finds the pages that a push changed.
func changes(ctx context.Context, r git.Repo, c repo.Change) ([]changed, error) {
	from := string(c.Old)
	if c.Old == git.ZeroOID {
		from = ""
	}
	d, err := r.Diff(ctx, git.DiffOptions{From: from, To: string(c.New), Straight: true, MaxFiles: 1, MaxLines: 1})
	if errors.Is(err, git.ErrNotFound) {
		return nil, nil // the previous version is no longer in the repository
	}
	if err != nil {
		return nil, fmt.Errorf("compare versions of a wiki: %w", err)
	}
	var list []changed
	for _, f := range d.Files {
		now, isPage := pageOf(f.NewPath)
		before, wasPage := pageOf(f.OldPath)
		one := changed{Page: now, what: activity.Updated}
		switch {
		case f.Deleted && wasPage:
			one = changed{Page: before, what: activity.Destroyed}
		case !isPage:
			continue
		case f.New, !wasPage:
			one.what = activity.Created
		case before.Slug != now.Slug:
			one.was = before.Slug
		}
		if list = append(list, one); len(list) == maxEvents {
			break
		}
	}
	return list, nil
}

// recordPage records the change to one page.
func recordPage(ctx context.Context, tx *db.Tx, p repo.AuxRepoPush, c changed) error {
	id, err := keepPage(ctx, tx, p.AuxRepo.ID, c)
	if err != nil {
		return err
	}
	of := activity.Subject{Type: TargetType, ID: id}
	if c.was != "" {
		if err := activity.Retitle(ctx, tx, of, c.Title); err != nil {
			return err
		}
	}
	e := activity.Event{
		ProjectID: p.AuxRepo.ProjectID, AuthorID: p.By.ID, Action: c.what, Audience: activity.WikiReaders, Subject: of,
		TargetType: TargetType, TargetID: &id, TargetIID: &id, TargetTitle: c.Title, CreatedAt: p.At,
	}
	if p.AuxRepo.ProjectID == nil { // groups have no activity feed
		e.Audience = activity.Alone
	}
	return activity.Record(ctx, tx, e)
}

// PagesOf returns the pages that events refer to, by ID. The caller has checked
// access to the events.
func (s *Service) PagesOf(ctx context.Context, ids []int64) (map[int64]Page, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := findPages(ctx, s.DB, ids)
	if err != nil {
		return nil, fmt.Errorf("find pages of wikis: %w", err)
	}
	return found, nil
}
