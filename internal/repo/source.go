package repo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// Source is the repository of a project as a feature reads it that works with
// what stands in it, as pipelines do. It answers for one actor.
type Source struct {
	Project *project.Project

	service *Service
	repo    git.Repo
	by      actor.Actor
	guarded *guard // read when it is first asked
}

// Source opens the repository of a project for those who read its code. The
// errors are those of project.ReadCode.
func (s *Service) Source(ctx context.Context, by actor.Actor, in project.Ref) (*Source, error) {
	p, r, err := s.read(ctx, by, in)
	if err != nil {
		return nil, err
	}
	return &Source{Project: p, service: s, repo: r, by: by}, nil
}

// SourceRef is a branch or tag and the commit that it leads to.
type SourceRef struct {
	Name    string // short
	Tag     bool
	Commit  git.OID
	Message string // of an annotated tag
}

// Full is the name with its place.
func (f SourceRef) Full() string {
	if f.Tag {
		return git.Tags + f.Name
	}
	return git.Heads + f.Name
}

// Find finds a branch or, without one, a tag by its short or full name.
// NotFound.
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

// BranchWith finds the first branch that has a commit; NotFound.
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

// Commit reads the commit that a revision leads to; NotFound.
func (o *Source) Commit(ctx context.Context, rev string) (*git.Commit, error) {
	c, err := o.repo.Commit(ctx, rev)
	return c, missing(err, "Commit")
}

// Commits reads those of the commits that are there, by their ids.
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

// Read gives a file of a commit, of which it reads limit+1 bytes at most. What
// is not there, or no file, is fs.ErrNotExist.
func (o *Source) Read(ctx context.Context, commit, path string, limit int) ([]byte, error) {
	entry, err := o.repo.Entry(ctx, commit, path)
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

// Paths lists the files of a commit, sorted.
func (o *Source) Paths(ctx context.Context, commit string) ([]string, error) {
	entries, err := o.repo.Tree(ctx, git.TreeOptions{Rev: commit, Recursive: true})
	if err != nil {
		return nil, missing(err, "Tree")
	}
	var paths []string
	for _, e := range entries {
		if e.Type == git.TypeBlob {
			paths = append(paths, e.Path)
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// Changed lists the files that differ between two commits: with straight as
// they are, otherwise since the history of both went apart. known is false
// when they can not be compared.
func (o *Source) Changed(ctx context.Context, from, to string, straight bool) (paths []string, known bool, err error) {
	d, err := o.repo.Diff(ctx, git.DiffOptions{From: from, To: to, Straight: straight, MaxFiles: 1, MaxLines: 1})
	if err := missing(err, "Commit"); errs.Is(err, errs.KindNotFound) {
		return nil, false, nil // it was there once
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
	return slices.Compact(paths), !d.TimedOut, nil
}

// Protected tells whether a branch or tag is protected.
func (o *Source) Protected(ctx context.Context, name string, tag bool) (bool, error) {
	rules, err := o.rules(ctx, name, tag)
	return len(rules) > 0, err
}

// MayRun tells whether the actor may have pipelines run on a branch or tag: a
// Developer, and where it is protected one who may push to it, merge into it or
// make it.
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
