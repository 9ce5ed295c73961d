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
	"svc/internal/setting"
)

// CompareOptions are the options of a comparison.
type CompareOptions struct {
	From, To string // branches, tags or commits
	// FromProject is the project that From is in, if it is another one of the
	// same fork network.
	FromProject *int64
	// Straight compares the two as they are; otherwise To is compared with
	// the merge base of both.
	Straight bool
	// Unidiff leaves the lines with the names of both files in the texts.
	Unidiff bool
}

// Comparison is the commits and diffs between From and To.
type Comparison struct {
	Project  *project.Project
	From, To git.OID
	Base     git.OID   // what To was compared with
	Commits  []git.OID // the oldest first
	Diff     *git.Diff
	repo     git.Repo
	name     string // of what was asked for, by ids alone
}

// Compare compares two revisions, for those who may read them. NotFound for a
// ref that is not there, and for another project that is not in the network or
// not seen.
func (s *Service) Compare(ctx context.Context, by actor.Actor, ref project.Ref, o CompareOptions) (*Comparison, error) {
	p, r, err := s.read(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	origin, err := s.origin(ctx, by, p, r, o.FromProject)
	if err != nil {
		return nil, err
	}
	c := &Comparison{Project: p, repo: r.Whole().With(origin)}
	if c.From, err = origin.ResolveCommit(ctx, o.From); err != nil {
		return nil, missing(err, "Ref")
	}
	if c.To, err = r.ResolveCommit(ctx, o.To); err != nil {
		return nil, missing(err, "Ref")
	}
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return nil, err
	}
	// Each takes a process of git, so they go at the same time.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	listed, read := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		c.Commits, err = c.repo.Range(ctx, c.From, c.To)
		close(listed)
		if err == nil { // the first ones, which are needed first
			_, err = c.repo.Commits(ctx, c.Commits[:min(len(c.Commits), ReadCommits)])
		}
		if err != nil {
			cancel()
		}
		read <- err
	}()
	err = c.compare(ctx, o, settings, listed)
	if err != nil {
		cancel()
	}
	if failed := <-read; failed != nil && (err == nil || !errors.Is(failed, context.Canceled)) {
		return nil, missing(failed, "Ref")
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// origin is the repository in which a comparison begins.
func (s *Service) origin(ctx context.Context, by actor.Actor, p *project.Project, r git.Repo, id *int64) (git.Repo, error) {
	if id == nil || *id == p.ID {
		return r, nil
	}
	other, origin, err := s.read(ctx, by, project.RefTo(*id))
	if err != nil {
		return git.Repo{}, err
	}
	same, err := s.Projects.SameNetwork(ctx, p, other)
	if err != nil {
		return git.Repo{}, err
	}
	if !same {
		return git.Repo{}, errs.NotFound("Project")
	}
	return origin, nil
}

// compare finds the base and the differences. Who lists the commits learns the
// base on the way, mostly.
func (c *Comparison) compare(ctx context.Context, o CompareOptions, settings setting.Settings, listed <-chan struct{}) (err error) {
	c.name = fmt.Sprint("compare ", c.From, c.To, o.Straight, o.Unidiff, settings.DiffMaxFiles, settings.DiffMaxLines)
	limits := git.DiffOptions{
		Base: func(ctx context.Context) (git.OID, error) {
			<-listed
			return c.repo.MergeBase(ctx, string(c.From), string(c.To))
		},
		From: string(c.From), To: string(c.To), Straight: o.Straight, Unidiff: o.Unidiff,
		MaxFiles: settings.DiffMaxFiles, MaxLines: settings.DiffMaxLines,
	}
	c.Diff, err = c.repo.Diff(ctx, limits)
	if errors.Is(err, git.ErrNotFound) && !o.Straight { // without a merge base, the histories have nothing in common
		limits.Straight = true
		c.Diff, err = c.repo.Diff(ctx, limits)
	}
	if err != nil {
		return missing(err, "Ref")
	}
	c.Base = c.Diff.Base
	return nil
}

// Keep keeps a form of the comparison under a name that says all that it was
// made of beside it. One that is not whole is not kept.
func (c *Comparison) Keep(name string, form []byte) {
	if !c.Diff.TimedOut {
		c.repo.Keep(c.name+" "+name, form, len(form))
	}
}

// Kept returns a form that was kept, nil without one.
func (c *Comparison) Kept(name string) []byte {
	form, _ := c.repo.Kept(c.name + " " + name)
	text, _ := form.([]byte)
	return text
}

// ReadCommits is how many commits are read at once.
const ReadCommits = 200

// Read reads commits of the comparison by their ids. There may be more of them
// than memory should hold, so they are read in parts.
func (c *Comparison) Read(ctx context.Context, ids []git.OID) ([]*git.Commit, error) {
	list, err := c.repo.Commits(ctx, ids)
	return list, passing(err)
}

// MergeBase returns the best common ancestor of revisions, for those who may
// read the repository. Invalid for fewer than two, or one that is not there;
// NotFound when they have none.
func (s *Service) MergeBase(ctx context.Context, by actor.Actor, ref project.Ref, revs []string) (*project.Project, *git.Commit, error) {
	p, r, err := s.read(ctx, by, ref)
	if err != nil {
		return nil, nil, err
	}
	if len(revs) < 2 {
		return nil, nil, errs.Refused("Provide at least 2 refs")
	}
	ids := make([]string, len(revs))
	var unknown []string
	for i, rev := range revs {
		id, err := r.ResolveCommit(ctx, rev)
		if errs.Is(missing(err, ""), errs.KindNotFound) {
			unknown = append(unknown, fmt.Sprintf("%.100s", rev))
		} else if err != nil {
			return nil, nil, passing(err)
		}
		ids[i] = string(id)
	}
	if len(unknown) > 0 {
		noun := "ref"
		if len(unknown) > 1 {
			noun = "refs"
		}
		return nil, nil, errs.Refused("Could not find %s: %s", noun, strings.Join(unknown, ", "))
	}
	r = r.Whole()
	base, err := r.MergeBase(ctx, ids...)
	if err != nil {
		return nil, nil, missing(err, "Merge Base")
	}
	commit, err := r.Commit(ctx, string(base))
	return p, commit, missing(err, "Merge Base")
}
