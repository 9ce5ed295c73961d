package repo

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/queue"
)

// Branch is a branch with the permissions of the actor.
type Branch struct {
	Name               string
	Commit             *git.Commit
	Merged             bool // into the default branch, which has more commits
	Protected          bool
	DevelopersCanPush  bool
	DevelopersCanMerge bool
	CanPush            bool
	CanDelete          bool
	Default            bool
}

// Branches lists the branches of a project, for users who can read its code.
// Invalid if the pattern or the page token is not valid.
func (s *Service) Branches(ctx context.Context, by actor.Actor, ref project.Ref, f RefFilter, pg db.Paging) (*project.Project, db.Page[Branch], error) {
	var page db.Page[Branch]
	p, r, err := s.read(ctx, by, ref)
	if err != nil {
		return nil, page, err
	}
	refs, err := pageRefs(ctx, r, git.Heads, f, pg)
	if err != nil {
		return nil, page, err
	}
	page = db.Page[Branch]{More: refs.More, Last: refs.Last, Total: refs.Total, Over: refs.Over}
	page.Items, err = s.branches(ctx, by, p, r, refs.Items)
	return p, page, err
}

// Distance is the number of commits that a branch has ahead of and behind the
// default branch.
type Distance struct{ Ahead, Behind int }

// Distances compares branches with the default branch, for users who can read
// the code of the project. Missing branches are left out.
func (s *Service) Distances(ctx context.Context, by actor.Actor, ref project.Ref, names []string) (map[string]Distance, error) {
	p, r, err := s.read(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	found := map[string]Distance{}
	for _, name := range names {
		var d Distance
		d.Ahead, d.Behind, err = r.Distance(ctx, git.Heads+p.DefaultBranch, git.Heads+name)
		if errs.Is(missing(err, "Branch"), errs.KindNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("compare branches: %w", passing(err))
		}
		found[name] = d
	}
	return found, nil
}

// Branch returns a branch, for users who can read the code of the project.
// NotFound.
func (s *Service) Branch(ctx context.Context, by actor.Actor, ref project.Ref, name string) (*project.Project, *Branch, error) {
	p, r, err := s.read(ctx, by, ref)
	if err != nil {
		return nil, nil, err
	}
	b, err := s.branch(ctx, by, p, r, name)
	return p, b, err
}

func (s *Service) branch(ctx context.Context, by actor.Actor, p *project.Project, r git.Repo, name string) (*Branch, error) {
	found, err := r.Ref(ctx, git.Heads+name)
	if err != nil {
		return nil, missing(err, "Branch")
	}
	list, err := s.branches(ctx, by, p, r, []git.Ref{found})
	if err != nil {
		return nil, err
	}
	return &list[0], nil
}

// branches returns the branches for refs.
func (s *Service) branches(ctx context.Context, by actor.Actor, p *project.Project, r git.Repo, refs []git.Ref) ([]Branch, error) {
	list := make([]Branch, len(refs))
	if len(refs) == 0 {
		return list, nil
	}
	ids := make([]git.OID, len(refs))
	for i, ref := range refs {
		ids[i] = ref.Target
	}
	commits, err := r.Commits(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("commits of branches: %w", passing(err))
	}
	merged, err := mergedInto(ctx, r, p.DefaultBranch, ids)
	if err != nil {
		return nil, err
	}
	guard, err := s.guard(ctx, by, p)
	if err != nil {
		return nil, err
	}
	writer := s.mayWrite(by, p)
	for i, ref := range refs {
		b := Branch{Name: ref.Short(), Commit: commits[i], Merged: merged[ref.Target], Default: ref.Short() == p.DefaultBranch}
		rules := guard.branches.matching(b.Name)
		b.Protected = len(rules) > 0
		b.DevelopersCanPush, b.DevelopersCanMerge = rules.developersCan(PushTo), rules.developersCan(MergeInto)
		b.CanPush = writer
		if writer && b.Protected {
			if b.CanPush, err = guard.may(ctx, rules, PushTo); err != nil {
				return nil, err
			}
		}
		if writer {
			if b.CanDelete, err = guard.deletes(ctx, r, ref); err != nil {
				return nil, err
			}
		}
		list[i] = b
	}
	return list, nil
}

// mayWrite reports whether an actor who can read a project may push to it.
func (s *Service) mayWrite(by actor.Actor, p *project.Project) bool {
	return p.Can(by).Push
}

// mergedInto returns which of the commits are merged into the default branch and
// differ from its head.
func mergedInto(ctx context.Context, r git.Repo, main string, ids []git.OID) (map[git.OID]bool, error) {
	if main == "" {
		return nil, nil
	}
	head, err := r.Ref(ctx, git.Heads+main)
	if errs.Is(missing(err, "Branch"), errs.KindNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, passing(err)
	}
	merged, err := r.Merged(ctx, head.Target, ids)
	if err != nil {
		return nil, fmt.Errorf("find merged branches: %w", passing(err))
	}
	delete(merged, head.Target)
	return merged, nil
}

// CreateBranch creates a branch at a revision, for Developers and above,
// subject to branch protection. Invalid if the name is not valid or exists, or
// if the revision is not a commit.
func (s *Service) CreateBranch(ctx context.Context, by actor.Actor, ref project.Ref, name, from string) (*project.Project, *Branch, error) {
	p, r, err := s.write(ctx, by, ref)
	if err != nil {
		return nil, nil, err
	}
	if err := git.CheckRef(git.Heads + name); err != nil {
		return nil, nil, errs.Refused("Branch name is invalid").Because(err)
	}
	if _, err := r.Ref(ctx, git.Heads+name); err == nil {
		return nil, nil, errs.Refused("Branch already exists")
	}
	// In an empty repository, the default branch is created first; other branches start
	// there.
	if initial := cmp.Or(p.InitialBranch, UsualBranch); p.DefaultBranch == "" && slices.Contains([]string{initial, "HEAD", git.Heads + initial}, from) {
		if err := s.firstCommit(ctx, by, p, r, readme(p)); err != nil {
			return nil, nil, err
		}
		if name == initial {
			b, err := s.branch(ctx, by, p, r, name)
			return p, b, err
		}
	}
	id, err := seen(by, p, r).ResolveCommit(ctx, from)
	if errs.Is(missing(err, "Ref"), errs.KindNotFound) {
		return nil, nil, errs.Refused("Invalid reference name: %s", from).Because(err)
	}
	if err != nil {
		return nil, nil, passing(err)
	}
	if err := s.move(ctx, by, p, r, git.Update{Ref: git.Heads + name, Old: git.ZeroOID, New: id}); err != nil {
		return nil, nil, err
	}
	b, err := s.branch(ctx, by, p, r, name)
	return p, b, err
}

// DeleteBranch deletes a branch, for Developers and above; a protected branch,
// for Maintainers and above. The default branch cannot be deleted. NotFound,
// Forbidden.
func (s *Service) DeleteBranch(ctx context.Context, by actor.Actor, ref project.Ref, name string) error {
	p, r, err := s.write(ctx, by, ref)
	if err != nil {
		return err
	}
	found, err := r.Ref(ctx, git.Heads+name)
	if err != nil {
		return missing(err, "Branch")
	}
	return s.move(ctx, by, p, r, git.Update{Ref: found.Name, Old: found.ID, New: git.ZeroOID})
}

// DeleteBranchAt is DeleteBranch for a branch that is expected at a commit.
// Conflict if it has moved or was deleted.
func (s *Service) DeleteBranchAt(ctx context.Context, by actor.Actor, ref project.Ref, name string, at git.OID) error {
	p, r, err := s.write(ctx, by, ref)
	if err != nil {
		return err
	}
	return s.move(ctx, by, p, r, git.Update{Ref: git.Heads + name, Old: at, New: git.ZeroOID})
}

// DeleteMerged deletes the branches that are merged into the default branch and
// not protected, in a background job, for Developers and above.
func (s *Service) DeleteMerged(ctx context.Context, by actor.Actor, ref project.Ref) error {
	p, _, err := s.write(ctx, by, ref)
	if err != nil {
		return err
	}
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		return s.Queue.Add(ctx, tx, mergedWork{p.ID, by}, queue.In(lane))
	})
}

// mergedWork is the background job that deletes merged branches as a user.
type mergedWork struct {
	ProjectID int64       `json:"project_id"`
	By        actor.Actor `json:"by"`
}

// Kind implements queue.Work.
func (mergedWork) Kind() string { return "repo_delete_merged" }

// together is the number of branches that are deleted in one update.
const together = 50

func (s *Service) deleteMerged(ctx context.Context, w mergedWork) error {
	p, r, err := s.write(ctx, w.By, project.RefTo(w.ProjectID)) // permissions may have changed
	if err != nil {
		return err
	}
	refs, err := r.Refs(ctx, git.RefOptions{Place: git.Heads})
	if err != nil {
		return passing(err)
	}
	ids := make([]git.OID, len(refs))
	for i, ref := range refs {
		ids[i] = ref.Target
	}
	merged, err := mergedInto(ctx, r, p.DefaultBranch, ids)
	if err != nil {
		return err
	}
	guard, err := s.guard(ctx, w.By, p)
	if err != nil {
		return err
	}
	var gone []git.Update
	for _, ref := range refs {
		short := ref.Short()
		if !merged[ref.Target] || short == p.DefaultBranch || len(guard.branches.matching(short)) > 0 {
			continue
		}
		gone = append(gone, git.Update{Ref: ref.Name, Old: ref.ID, New: git.ZeroOID})
	}
	for part := range slices.Chunk(gone, together) {
		err := s.move(ctx, w.By, p, r, part...)
		if !errs.Is(err, errs.KindConflict) {
			if err != nil {
				return err
			}
			continue
		}
		for _, u := range part { // a branch has moved: delete them one by one
			if err := s.move(ctx, w.By, p, r, u); err != nil && !errs.Is(err, errs.KindConflict) {
				return err
			}
		}
	}
	return nil
}
