package repo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// CommitFilter selects commits. The zero value selects all commits of the
// default branch.
type CommitFilter struct {
	Ref         string // a revision or a range a..b
	All         bool   // of all refs
	Path        string
	Follow      bool   // follow renames of the path
	Author      string // part of the name or email address
	Message     string // part of the message
	Since       time.Time
	Until       time.Time
	FirstParent bool
	Topo        bool // topological order
	Stats       bool
}

// CommitDetail is a commit with the requested details.
type CommitDetail struct {
	*git.Commit
	Stats *git.Stat
}

// maxSkip is more commits than any history has, and within the range of git.
const maxSkip = 1 << 30

// Commits lists commits, for users who can read the code of the project. There
// is no total, because counting a history costs as much as reading it. The list
// is empty if the revision does not exist.
func (s *Service) Commits(ctx context.Context, by actor.Actor, ref project.Ref, f CommitFilter, pg db.Paging) (*project.Project, db.Page[CommitDetail], error) {
	page := db.Page[CommitDetail]{Items: []CommitDetail{}, Over: true}
	p, r, err := s.read(ctx, by, ref)
	if err != nil {
		return nil, page, err
	}
	if pg.Offset > maxSkip {
		return p, page, nil
	}
	list, err := r.Log(ctx, f.options(pg))
	if errs.Is(missing(err, "Commit"), errs.KindNotFound) {
		return p, page, nil
	}
	if err != nil {
		return nil, page, passing(err)
	}
	if len(list) > pg.Limit {
		list, page.More = list[:pg.Limit], true
	}
	var stats []git.Stat
	if f.Stats {
		ids := make([]git.OID, len(list))
		for i, c := range list {
			ids[i] = c.ID
		}
		if stats, err = r.Stats(ctx, ids); err != nil {
			return nil, page, fmt.Errorf("count lines: %w", passing(err))
		}
	}
	for i, c := range list {
		d := CommitDetail{Commit: c}
		if f.Stats {
			d.Stats = &stats[i]
		}
		page.Items = append(page.Items, d)
	}
	return p, page, nil
}

func (f CommitFilter) options(pg db.Paging) git.LogOptions {
	o := git.LogOptions{
		All: f.All, Follow: f.Follow, Author: f.Author, Message: f.Message, Since: sinceEpoch(f.Since), Until: sinceEpoch(f.Until), FirstParent: f.FirstParent,
		Skip: pg.Offset, Limit: pg.Limit + 1,
	}
	if f.Topo {
		o.Order = git.Topo
	}
	if f.Path != "" {
		o.Paths = []string{f.Path}
	}
	if f.All {
		return o
	}
	from := f.Ref
	if from == "" {
		from = "HEAD"
	}
	if not, until, ok := strings.Cut(from, ".."); ok && !strings.HasPrefix(until, ".") {
		o.Not, from = []string{not}, until
	}
	o.From = []string{from}
	return o
}

// sinceEpoch limits a time to the range of git, which starts in 1970.
func sinceEpoch(t time.Time) time.Time {
	if !t.IsZero() && t.Unix() < 0 {
		return time.Unix(0, 0)
	}
	return t
}

// Commit returns a commit, for users who can read the code of the project.
// NotFound.
func (s *Service) Commit(ctx context.Context, by actor.Actor, ref project.Ref, rev string, stats bool) (*project.Project, *CommitDetail, error) {
	p, r, err := s.read(ctx, by, ref)
	if err != nil {
		return nil, nil, err
	}
	c, err := r.Commit(ctx, rev)
	if err != nil {
		return nil, nil, missing(err, "Commit")
	}
	d, err := s.detail(ctx, r, c, stats)
	return p, d, err
}

func (s *Service) detail(ctx context.Context, r git.Repo, c *git.Commit, stats bool) (*CommitDetail, error) {
	d := &CommitDetail{Commit: c}
	if stats {
		list, err := r.Stats(ctx, []git.OID{c.ID})
		if err != nil {
			return nil, fmt.Errorf("count lines of %s: %w", c.ID, passing(err))
		}
		d.Stats = &list[0]
	}
	return d, nil
}

// CommitDiff returns the diff of a commit with its first parent, for users who
// can read the code of the project. NotFound.
func (s *Service) CommitDiff(ctx context.Context, by actor.Actor, ref project.Ref, rev string, unidiff bool, pg db.Paging) (db.Page[git.FileDiff], error) {
	var page db.Page[git.FileDiff]
	_, r, err := s.read(ctx, by, ref)
	if err != nil {
		return page, err
	}
	c, err := r.Commit(ctx, rev)
	if err != nil {
		return page, missing(err, "Commit")
	}
	d, err := s.commitDiff(ctx, r, c, unidiff)
	if err != nil {
		return page, err
	}
	return db.SlicePage(d.Files, pg), nil
}

func (s *Service) commitDiff(ctx context.Context, r git.Repo, c *git.Commit, unidiff bool) (*git.Diff, error) {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return nil, err
	}
	o := git.DiffOptions{To: string(c.ID), Straight: true, Unidiff: unidiff, MaxFiles: settings.DiffMaxFiles, MaxLines: settings.DiffMaxLines}
	if len(c.ParentIDs) > 0 {
		o.From = string(c.ParentIDs[0])
	}
	d, err := r.Whole().Diff(ctx, o) // the parent is in the same history
	if err != nil {
		return nil, fmt.Errorf("diff of %s: %w", c.ID, passing(err))
	}
	return d, nil
}

// CommitRef is a branch or tag that contains a commit.
type CommitRef struct {
	Type RefKind
	Name string
}

// CommitRefs lists the branches, the tags or (for an empty kind) both that
// contain a commit, for users who can read the code of the project. NotFound.
func (s *Service) CommitRefs(ctx context.Context, by actor.Actor, ref project.Ref, rev string, kind RefKind, pg db.Paging) (db.Page[CommitRef], error) {
	var page db.Page[CommitRef]
	_, r, err := s.read(ctx, by, ref)
	if err != nil {
		return page, err
	}
	var all []CommitRef
	for _, place := range []struct {
		kind RefKind
		at   string
	}{{BranchRef, git.Heads}, {TagRef, git.Tags}} {
		if kind != "" && kind != place.kind {
			continue
		}
		names, err := r.Contains(ctx, rev, place.at, 0)
		if err != nil {
			return page, missing(err, "Commit")
		}
		for _, name := range names {
			all = append(all, CommitRef{place.kind, strings.TrimPrefix(name, place.at)})
		}
	}
	return db.SlicePage(all, pg), nil
}

// CommitSequence counts the commits from the root to a commit, for users who
// can read the code of the project. NotFound.
func (s *Service) CommitSequence(ctx context.Context, by actor.Actor, ref project.Ref, rev string, firstParent bool) (int, error) {
	_, r, err := s.read(ctx, by, ref)
	if err != nil {
		return 0, err
	}
	n, err := r.Count(ctx, git.LogOptions{From: []string{rev}, FirstParent: firstParent})
	return n, missing(err, "Commit")
}
