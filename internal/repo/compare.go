package repo

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	// FromProject is the project of From, if it is another one of the fork
	// network.
	FromProject *int64
	// Straight compares From and To directly; otherwise To is compared with
	// their merge base.
	Straight bool
	// Unidiff keeps the file headers in the diffs.
	Unidiff bool
	// IgnoreWhitespace leaves out lines that differ in whitespace only.
	IgnoreWhitespace bool
}

// Comparison is the commits and diffs between From and To.
type Comparison struct {
	Project  *project.Project
	From, To git.OID
	Base     git.OID   // the commit that To was compared with
	Commits  []git.OID // oldest first
	Diff     *git.Diff
	repo     git.Repo
	name     string // cache key
}

// Compare compares two revisions, for users who may read them. NotFound if a
// ref does not exist, or the other project is not in the fork network or not
// visible.
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
	// Each needs a git process, so they run concurrently.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	listed, read := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		c.Commits, err = c.repo.Range(ctx, c.From, c.To)
		close(listed)
		if err == nil { // the commits of the first page, which are needed first
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

// DiffCommits compares two commits directly, for users who may read them; an
// empty from is the empty tree. The options may limit it to some files, or ask
// for more context. NotFound.
func (s *Service) DiffCommits(ctx context.Context, by actor.Actor, ref project.Ref, from, to git.OID, o git.DiffOptions) (*git.Diff, error) {
	_, r, err := s.read(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	for _, id := range []git.OID{from, to} {
		if id == "" {
			continue
		}
		if _, err := r.ResolveCommit(ctx, string(id)); err != nil {
			return nil, missing(err, "Commit")
		}
	}
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return nil, err
	}
	o.From, o.To, o.Straight = string(from), string(to), true
	if o.MaxFiles == 0 {
		o.MaxFiles, o.MaxLines = settings.DiffMaxFiles, settings.DiffMaxLines
	}
	d, err := r.Whole().Diff(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("diff of %s: %w", to, missing(err, "Commit"))
	}
	return d, nil
}

// WritePatch writes the commits of to that from does not have as emails for git am;
// with an empty from all commits of to. The actor must be able to read the code.
// NotFound, with nothing written.
func (s *Service) WritePatch(ctx context.Context, by actor.Actor, ref project.Ref, from, to git.OID, w io.Writer) error {
	_, r, err := s.read(ctx, by, ref)
	if err != nil {
		return err
	}
	for _, id := range []git.OID{from, to} {
		if id == "" {
			continue
		}
		if _, err := r.ResolveCommit(ctx, string(id)); err != nil {
			return missing(err, "Commit")
		}
	}
	return missing(r.Whole().Patch(ctx, w, from, to), "Commit")
}

// origin returns the repository of From.
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

// compare computes the base and the diff. It waits for the list of commits,
// which usually finds the base as well.
func (c *Comparison) compare(ctx context.Context, o CompareOptions, settings setting.Settings, listed <-chan struct{}) (err error) {
	c.name = fmt.Sprint("compare ", c.From, c.To, o.Straight, o.Unidiff, o.IgnoreWhitespace, settings.DiffMaxFiles, settings.DiffMaxLines)
	limits := git.DiffOptions{
		Base: func(ctx context.Context) (git.OID, error) {
			<-listed
			return c.repo.MergeBase(ctx, string(c.From), string(c.To))
		},
		From: string(c.From), To: string(c.To), Straight: o.Straight, Unidiff: o.Unidiff, IgnoreWhitespace: o.IgnoreWhitespace,
		MaxFiles: settings.DiffMaxFiles, MaxLines: settings.DiffMaxLines,
	}
	c.Diff, err = c.repo.Diff(ctx, limits)
	if errors.Is(err, git.ErrNotFound) && !o.Straight { // no merge base: unrelated histories
		limits.Straight = true
		c.Diff, err = c.repo.Diff(ctx, limits)
	}
	if err != nil {
		return missing(err, "Ref")
	}
	c.Base = c.Diff.Base
	return nil
}

// Keep caches an encoding of the comparison. The name must identify everything
// else that the encoding depends on. An incomplete comparison is not cached.
func (c *Comparison) Keep(name string, form []byte) {
	if !c.Diff.TimedOut {
		c.repo.Keep(c.name+" "+name, form, len(form))
	}
}

// Kept returns a cached encoding; nil if there is none.
func (c *Comparison) Kept(name string) []byte {
	form, _ := c.repo.Kept(c.name + " " + name)
	text, _ := form.([]byte)
	return text
}

// ReadCommits is the number of commits to read at once.
const ReadCommits = 200

// Read reads commits of the comparison by their IDs. They are read in parts,
// because there may be too many to hold in memory.
func (c *Comparison) Read(ctx context.Context, ids []git.OID) ([]*git.Commit, error) {
	list, err := c.repo.Commits(ctx, ids)
	return list, passing(err)
}

// MergeBase returns the best common ancestor of revisions, for users who may
// read the repository. Invalid for fewer than two, or if one does not exist;
// NotFound if there is no common ancestor.
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
