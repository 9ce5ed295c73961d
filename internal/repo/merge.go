package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// The functions of this file are for merge requests. The caller checks the
// permissions on projects and merge requests; the rules for branches are
// checked here.

// Tip returns the commit of a branch; NotFound.
func (s *Service) Tip(ctx context.Context, p *project.Project, branch string) (git.OID, error) {
	r, err := s.open(p.Storage, p.ID)
	if err != nil {
		return "", err
	}
	if git.CheckRef(git.Heads+branch) != nil {
		return "", errs.NotFound("Branch")
	}
	ref, err := r.Ref(ctx, git.Heads+branch)
	return ref.Target, missing(err, "Branch")
}

// MergeRef returns the name of a ref of a merge request.
func MergeRef(iid int64, name string) string {
	return MergeRefs + strconv.FormatInt(iid, 10) + "/" + name
}

// Adopt fetches the head of a merge request into the target project and keeps
// it there, independent of the source. NotFound; Unavailable while the
// repository is being moved.
func (s *Service) Adopt(ctx context.Context, target, source *project.Project, head git.OID) error {
	return s.hold(ctx, target, func(r git.Repo) error { return s.adoptHead(ctx, r, target, source, head) })
}

func (s *Service) adoptHead(ctx context.Context, r git.Repo, target, source *project.Project, head git.OID) error {
	if source != nil && source.ID != target.ID {
		from, err := s.open(source.Storage, source.ID)
		if err != nil {
			return err
		}
		if err := r.Take(ctx, from, head); err != nil {
			return fmt.Errorf("take commits of project %d: %w", source.ID, missing(err, "Commit"))
		}
	}
	// Heads are kept after a force push, because comments refer to them.
	if err := r.UpdateRefs(ctx, []git.Update{{Ref: internalRefs + "keep/" + string(head), New: head}}); err != nil {
		return fmt.Errorf("keep commit %s: %w", head, missing(err, "Commit"))
	}
	return nil
}

// ShowHead sets the head ref of a merge request to its newest head, which was
// adopted before. newest is called after the ref was read, and again if the ref
// was moved concurrently, so that concurrent calls never move it back.
// NotFound; Unavailable while the repository is being moved.
func (s *Service) ShowHead(ctx context.Context, target *project.Project, iid int64, newest func() (git.OID, error)) error {
	return s.hold(ctx, target, func(r git.Repo) error { return s.showHead(ctx, r, iid, newest) })
}

func (s *Service) showHead(ctx context.Context, r git.Repo, iid int64, newest func() (git.OID, error)) error {
	const tries = 20
	for try := 1; ; try++ {
		at, err := r.Ref(ctx, MergeRef(iid, "head"))
		if errors.Is(err, git.ErrNotFound) {
			at.ID, err = git.ZeroOID, nil
		}
		if err != nil {
			return passing(err)
		}
		head, err := newest()
		if err != nil || head == at.ID {
			return err
		}
		err = r.UpdateRefs(ctx, []git.Update{{Ref: MergeRef(iid, "head"), Old: at.ID, New: head}})
		if !errors.Is(err, git.ErrConflict) || try == tries {
			return missing(err, "Commit")
		}
	}
}

// DropMerge deletes the refs of a deleted merge request.
func (s *Service) DropMerge(ctx context.Context, target *project.Project, iid int64) error {
	return s.hold(ctx, target, func(r git.Repo) error {
		var gone []git.Update
		for _, name := range []string{"head", "merge"} {
			if ref, err := r.Ref(ctx, MergeRef(iid, name)); err == nil {
				gone = append(gone, git.Update{Ref: ref.Name, Old: ref.ID, New: git.ZeroOID})
			}
		}
		return r.UpdateRefs(ctx, gone)
	})
}

// Span is the relation of two commits of a project.
type Span struct {
	Base  git.OID // the best common ancestor; empty if there is none
	Files int     // number of files that differ between it and the head
}

// Span returns the merge base of the target and the head of a merge request,
// and the number of changed files. NotFound.
func (s *Service) Span(ctx context.Context, p *project.Project, target, head git.OID) (Span, error) {
	r, err := s.open(p.Storage, p.ID)
	if err != nil {
		return Span{}, err
	}
	base, err := r.MergeBase(ctx, string(target), string(head))
	if err != nil && !errors.Is(err, git.ErrNotFound) {
		return Span{}, passing(err)
	}
	d, err := r.Diff(ctx, git.DiffOptions{From: string(base), To: string(head), Straight: true, MaxFiles: 1, MaxLines: 1})
	if err != nil {
		return Span{}, missing(err, "Commit")
	}
	return Span{base, len(d.Files)}, nil
}

// DiffOf compares two commits of a merge request directly. Without a base all
// files are new. NotFound.
func (s *Service) DiffOf(ctx context.Context, p *project.Project, base, head git.OID, o git.DiffOptions) (*git.Diff, error) {
	r, err := s.open(p.Storage, p.ID)
	if err != nil {
		return nil, err
	}
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return nil, err
	}
	o.From, o.To, o.Straight = string(base), string(head), true
	if o.MaxFiles == 0 {
		o.MaxFiles, o.MaxLines = settings.DiffMaxFiles, settings.DiffMaxLines
	}
	d, err := r.Diff(ctx, o)
	return d, missing(err, "Commit")
}

// TextAt returns the content of a text file in a commit. NotFound; TooLarge if it
// has more than limit bytes; Invalid for a binary file.
func (s *Service) TextAt(ctx context.Context, p *project.Project, commit git.OID, path string, limit int64) ([]byte, error) {
	r, err := s.open(p.Storage, p.ID)
	if err != nil {
		return nil, err
	}
	entry, err := r.Entry(ctx, string(commit), path)
	if err != nil {
		return nil, missing(err, "File")
	}
	if entry.Type != git.TypeBlob || entry.Mode == "120000" {
		return nil, errs.NotFound("File")
	}
	return textOf(ctx, r, entry.OID, path, limit)
}

func textOf(ctx context.Context, r git.Repo, id git.OID, path string, limit int64) ([]byte, error) {
	info, err := r.Info(ctx, id)
	if err != nil {
		return nil, missing(err, "File")
	}
	if info.Size > min(limit, git.MaxObject) {
		return nil, errs.TooLarge("The file %.200q is too large.", path)
	}
	o, err := r.Object(ctx, id)
	if err != nil {
		return nil, missing(err, "File")
	}
	if bytes.IndexByte(o.Content, 0) >= 0 {
		return nil, errs.Invalid("The file %.200q is binary.", path)
	}
	return o.Content, nil
}

// CommitsOf lists the commits of a merge request, newest first. NotFound.
func (s *Service) CommitsOf(ctx context.Context, p *project.Project, base, head git.OID, pg db.Paging) (db.Page[*git.Commit], error) {
	var page db.Page[*git.Commit]
	r, err := s.open(p.Storage, p.ID)
	if err != nil {
		return page, err
	}
	ids, err := between(ctx, r, base, head)
	if err != nil {
		return page, err
	}
	part := db.SlicePage(ids, pg)
	page = db.Page[*git.Commit]{Total: part.Total, Over: part.Over, More: part.More}
	page.Items, err = r.Commits(ctx, part.Items)
	return page, missing(err, "Commit")
}

// NewCommits lists the commits of head that base does not have, newest first, up to most.
// NotFound.
func (s *Service) NewCommits(ctx context.Context, p *project.Project, base, head git.OID, most int) ([]git.OID, error) {
	r, err := s.open(p.Storage, p.ID)
	if err != nil {
		return nil, err
	}
	ids, err := r.LogIDs(ctx, git.LogOptions{From: []string{string(head)}, Not: []string{string(base)}, Limit: most})
	return ids, missing(err, "Commit")
}

// between lists the commits of head that base does not have, newest first.
func between(ctx context.Context, r git.Repo, base, head git.OID) ([]git.OID, error) {
	o := git.LogOptions{From: []string{string(head)}, Order: git.Topo}
	if base != "" {
		o.Not = []string{string(base)}
	}
	ids, err := r.LogIDs(ctx, o)
	return ids, missing(err, "Commit")
}

// Has reports whether a commit is an ancestor of another, or the same; false if
// one of them does not exist.
func (s *Service) Has(ctx context.Context, p *project.Project, in, commit git.OID) (bool, error) {
	r, err := s.open(p.Storage, p.ID)
	if err != nil {
		return false, err
	}
	is, err := r.IsAncestor(ctx, string(commit), string(in))
	if errs.Is(missing(err, "Commit"), errs.KindNotFound) {
		return false, nil
	}
	return is, passing(err)
}

// Behind counts the commits of the target that the head of a merge request does
// not have.
func (s *Service) Behind(ctx context.Context, p *project.Project, target, head git.OID) (int, error) {
	r, err := s.open(p.Storage, p.ID)
	if err != nil {
		return 0, err
	}
	n, err := r.Count(ctx, git.LogOptions{From: []string{string(target)}, Not: []string{string(head)}})
	return n, missing(err, "Commit")
}

// Clashes reports whether merging two commits causes conflicts. NotFound.
func (s *Service) Clashes(ctx context.Context, p *project.Project, target, head git.OID) (bool, error) {
	r, err := s.open(p.Storage, p.ID)
	if err != nil {
		return false, err
	}
	err = r.CanMerge(ctx, string(target), string(head))
	if errors.Is(err, git.ErrConflict) {
		return true, nil
	}
	return false, missing(err, "Commit")
}

// MayMerge reports whether an actor may merge into a branch: users who may push
// to it, or for a protected branch those whom its rules allow to merge.
func (s *Service) MayMerge(ctx context.Context, by actor.Actor, p *project.Project, branch string) (bool, error) {
	return s.mayMove(ctx, by, p, branch, MergeInto)
}

// MayPush reports whether an actor may push to an existing branch.
func (s *Service) MayPush(ctx context.Context, by actor.Actor, p *project.Project, branch string) (bool, error) {
	return s.mayMove(ctx, by, p, branch, PushTo)
}

func (s *Service) mayMove(ctx context.Context, by actor.Actor, p *project.Project, branch string, a RefAction) (bool, error) {
	if p.Writable() != nil {
		return false, nil
	}
	if !s.mayWrite(by, p) {
		if a != PushTo || by.Anonymous() || !s.onlyCollaborates(by, p) {
			return false, nil
		}
		branches, err := s.collaborationBranches(ctx, by, p)
		if err != nil || !slices.Contains(branches, branch) {
			return false, err
		}
	}
	g, err := s.guard(ctx, by, p)
	if err != nil {
		return false, err
	}
	rules := g.branches.matching(branch)
	if len(rules) == 0 {
		return true, nil
	}
	return g.may(ctx, rules, a)
}

// Guarded reports whether a branch is protected or the default branch. Such a
// branch must not be deleted automatically.
func (s *Service) Guarded(ctx context.Context, p *project.Project, branch string) (bool, error) {
	if branch == p.DefaultBranch {
		return true, nil
	}
	g, err := s.guard(ctx, actor.System(), p)
	if err != nil {
		return false, err
	}
	return len(g.branches.matching(branch)) > 0, nil
}
