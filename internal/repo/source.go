package repo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// Source is the repository of a project for features that work with its
// content, such as pipelines. It is bound to an actor.
type Source struct {
	Project *project.Project

	service *Service
	repo    git.Repo // as visible to the actor
	by      actor.Actor
	guarded *guard // read on first use
}

// Source opens the repository of a project, for users who can read its code.
// The errors are those of project.ReadCode.
func (s *Service) Source(ctx context.Context, by actor.Actor, in project.Ref) (*Source, error) {
	p, r, err := s.read(ctx, by, in)
	if err != nil {
		return nil, err
	}
	return &Source{Project: p, service: s, repo: r, by: by}, nil
}

// SourceOf opens the repository of a project that the caller has read for the
// actor, or for another actor if by is the system. The errors are those of
// Project.View for the code.
func (s *Service) SourceOf(by actor.Actor, p *project.Project) (*Source, error) {
	if err := p.View(by, project.CodePart); err != nil {
		return nil, err
	}
	r, err := s.open(p.Storage, p.ID)
	if err != nil {
		return nil, err
	}
	return &Source{Project: p, service: s, repo: seen(by, p, r), by: by}, nil
}

// SourceRef is a branch or tag and its commit.
type SourceRef struct {
	Name    string // short name
	Tag     bool
	Commit  git.OID
	Message string // of an annotated tag
}

// Full returns the full name of the ref.
func (f SourceRef) Full() string {
	if f.Tag {
		return git.Tags + f.Name
	}
	return git.Heads + f.Name
}

// Find finds a branch, or else a tag, by its short or full name. NotFound.
func (o *Source) Find(ctx context.Context, name string) (SourceRef, error) {
	places := []string{git.Heads + name, git.Tags + name}
	if strings.HasPrefix(name, git.Heads) || strings.HasPrefix(name, git.Tags) {
		places = []string{name}
	}
	for _, full := range places {
		ref, err := o.repo.Ref(ctx, full)
		if err := missing(err, "Reference"); errs.Is(err, errs.KindNotFound) {
			continue
		} else if err != nil {
			return SourceRef{}, err
		}
		found := SourceRef{Name: shortRef(full), Tag: strings.HasPrefix(full, git.Tags), Commit: ref.Target}
		if ref.Tag != "" {
			tag, err := o.repo.Tag(ctx, ref.Tag)
			if err != nil {
				return SourceRef{}, missing(err, "Reference")
			}
			found.Message = tag.Message
		}
		return found, nil
	}
	return SourceRef{}, errs.NotFound("Reference")
}

// Name resolves a name to a branch, or to a tag if there is no such branch, and
// returns the short name. A name that is neither is taken for a branch, unless
// it begins with refs/tags/. Other refs keep their full names. Objects are not
// read.
func (o *Source) Name(ctx context.Context, name string) (short string, tag bool, err error) {
	if short, ok := strings.CutPrefix(name, git.Heads); ok {
		return short, false, nil
	}
	if short, ok := strings.CutPrefix(name, git.Tags); ok {
		return short, true, nil
	}
	for _, place := range []string{git.Heads, git.Tags} {
		has, err := o.repo.HasRef(ctx, place+name)
		if err = missing(err, "Reference"); err != nil && !errs.Is(err, errs.KindNotFound) {
			return "", false, err
		}
		if has {
			return name, place == git.Tags, nil
		}
	}
	return name, false, nil
}

// BranchWith finds the first branch that contains a commit. NotFound.
func (o *Source) BranchWith(ctx context.Context, commit string) (string, error) {
	names, err := o.repo.Contains(ctx, commit, git.Heads, 1)
	if err != nil {
		return "", missing(err, "Commit")
	}
	if len(names) == 0 {
		return "", errs.NotFound("References for commit")
	}
	return strings.TrimPrefix(names[0], git.Heads), nil
}

// Commit reads the commit of a revision that the actor can see. NotFound.
func (o *Source) Commit(ctx context.Context, rev string) (*git.Commit, error) {
	c, err := o.repo.Commit(ctx, rev)
	return c, missing(err, "Commit")
}

// CommitAt reads a commit by an ID that a feature has stored, even if no ref
// contains it any more. NotFound.
func (o *Source) CommitAt(ctx context.Context, id string) (*git.Commit, error) {
	if _, ok := git.ParseOID(id); !ok {
		return nil, errs.NotFound("Commit")
	}
	c, err := o.repo.Whole().Commit(ctx, id)
	return c, missing(err, "Commit")
}

// CommitDiff returns the diff of a commit of the repository with its first parent,
// within the limits of the instance.
func (o *Source) CommitDiff(ctx context.Context, c *git.Commit) (*git.Diff, error) {
	return o.service.commitDiff(ctx, o.repo, c, false)
}

// Commits reads the commits that exist, by their IDs.
func (o *Source) Commits(ctx context.Context, ids []string) (map[string]*git.Commit, error) {
	var asked []git.OID
	for _, id := range ids {
		if oid, ok := git.ParseOID(id); ok {
			asked = append(asked, oid)
		}
	}
	found := map[string]*git.Commit{}
	list, err := o.repo.CommitsThere(ctx, asked)
	if errors.Is(err, git.ErrNoRepository) {
		return found, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read commits: %w", passing(err))
	}
	for _, c := range list {
		if c != nil {
			found[string(c.ID)] = c
		}
	}
	return found, nil
}

// Read returns a file of a commit, whose ID is from Find, Commit or CommitAt.
// It reads at most limit+1 bytes. fs.ErrNotExist if there is no such file.
func (o *Source) Read(ctx context.Context, commit, path string, limit int) ([]byte, error) {
	var entry git.Entry
	err := git.ErrBadRevision
	if _, ok := git.ParseOID(commit); ok {
		entry, err = o.repo.Whole().Entry(ctx, commit, path)
	}
	if err == nil && entry.Type != git.TypeBlob {
		err = git.ErrNotFound
	}
	if err := missing(err, "File"); errs.Is(err, errs.KindNotFound) {
		return nil, fmt.Errorf("%s at %s: %w", path, commit, fs.ErrNotExist)
	} else if err != nil {
		return nil, err
	}
	content, err := o.repo.Open(ctx, entry.OID)
	if err != nil {
		return nil, fmt.Errorf("open %s at %s: %w", path, commit, passing(err))
	}
	text, err := io.ReadAll(io.LimitReader(content, int64(limit)+1))
	if err = errors.Join(err, content.Close()); err != nil {
		return nil, fmt.Errorf("read %s at %s: %w", path, commit, passing(err))
	}
	return text, nil
}

// Paths lists the files of a commit in a directory and below it, sorted. The empty
// directory is the root. NotFound if there is no such directory. For the ID see Read.
func (o *Source) Paths(ctx context.Context, commit, directory string) ([]string, error) {
	ids, err := o.files(ctx, commit, directory)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(ids)), nil
}

// FileIDs returns the IDs of all files of a commit by path. NotFound. For the commit see
// Read.
func (o *Source) FileIDs(ctx context.Context, commit string) (map[string]string, error) {
	return o.files(ctx, commit, "")
}

func (o *Source) files(ctx context.Context, commit, directory string) (map[string]string, error) {
	if _, ok := git.ParseOID(commit); !ok {
		return nil, errs.NotFound("Tree")
	}
	entries, err := o.repo.Whole().Tree(ctx, git.TreeOptions{Rev: commit, Path: directory, Recursive: true})
	if err != nil {
		return nil, missing(err, "Tree")
	}
	ids := make(map[string]string, len(entries))
	for _, e := range entries {
		if e.Type == git.TypeBlob {
			ids[e.Path] = string(e.OID)
		}
	}
	return ids, nil
}

// FileID returns the ID of a file or directory of a commit; empty if there is none. For
// the commit see Read.
func (o *Source) FileID(ctx context.Context, commit, path string) (string, error) {
	if _, ok := git.ParseOID(commit); !ok {
		return "", nil
	}
	entry, err := o.repo.Whole().Entry(ctx, commit, strings.Trim(path, "/"))
	if err := missing(err, "File"); errs.Is(err, errs.KindNotFound) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	return string(entry.OID), nil
}

// Changed lists the files that differ between two commits: directly if straight
// is set, else since their merge base. known is false if they cannot be
// compared, or if more files differ than a comparison lists. For the IDs see Read.
func (o *Source) Changed(ctx context.Context, from, to string, straight bool) (paths []string, known bool, err error) {
	for _, id := range []string{from, to} {
		if _, ok := git.ParseOID(id); !ok && id != "" { // an empty ID is the state before the first commit
			return nil, false, nil
		}
	}
	d, err := o.repo.Whole().Diff(ctx, git.DiffOptions{From: from, To: to, Straight: straight, MaxFiles: 1, MaxLines: 1})
	if err := missing(err, "Commit"); errs.Is(err, errs.KindNotFound) {
		return nil, false, nil // the commit no longer exists
	} else if err != nil {
		return nil, false, err
	}
	for _, f := range d.Files {
		paths = append(paths, f.NewPath)
		if f.OldPath != f.NewPath {
			paths = append(paths, f.OldPath)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths), !d.TimedOut && !d.Cut, nil
}

// Protected reports whether a branch or tag is protected.
func (o *Source) Protected(ctx context.Context, name string, tag bool) (bool, error) {
	rules, err := o.rules(ctx, name, tag)
	return len(rules) > 0, err
}

// MayRun reports whether the actor may run pipelines on a branch or tag:
// Developers and above; on a protected branch, those who may push to it or
// merge into it; for a protected tag, those who may create it.
func (o *Source) MayRun(ctx context.Context, name string, tag bool) (bool, error) {
	rules, err := o.rules(ctx, name, tag)
	if err != nil {
		return false, err
	}
	if !o.by.Admin && o.Project.Access.Level() < project.Developer {
		return false, nil
	}
	if len(rules) == 0 {
		return true, nil
	}
	actions := []RefAction{PushTo, MergeInto}
	if tag {
		actions = []RefAction{CreateRef}
	}
	for _, action := range actions {
		if may, err := o.guarded.may(ctx, rules, action); err != nil || may {
			return may, err
		}
	}
	return false, nil
}

func (o *Source) rules(ctx context.Context, name string, tag bool) (protections, error) {
	if o.guarded == nil {
		g, err := o.service.guard(ctx, o.by, o.Project)
		if err != nil {
			return nil, err
		}
		o.guarded = g
	}
	if tag {
		return o.guarded.tags.matching(name), nil
	}
	return o.guarded.branches.matching(name), nil
}
