package repo

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// Landing has the options of a merge into a branch of the same repository.
type Landing struct {
	Branch        string
	Old           git.OID // expected commit of the branch
	Head          git.OID // commit to merge
	Forward       bool    // fast-forward, without a merge commit
	Squash        bool    // squash into one commit
	MergeMessage  string
	SquashMessage string
	Author        git.Signature // of the squash commit
	// About returns the description of the push, given the new commits.
	About func(Landed) string
}

// Landed has the commits that a merge created.
type Landed struct {
	Merge  git.OID // empty if there is no merge commit
	Squash git.OID
}

// Land merges a commit into a branch, for an actor who may merge into it, and
// records it as a push. Conflict if the branch has moved; Unprocessable if
// there are conflicts or nothing to merge; Forbidden with the message of the
// rule.
func (s *Service) Land(ctx context.Context, by actor.Actor, p *project.Project, l Landing) (Landed, error) {
	var made Landed
	if err := p.Writable(); err != nil {
		return made, err
	}
	may, err := s.MayMerge(ctx, by, p, l.Branch)
	if err != nil {
		return made, err
	}
	if !may {
		return made, errs.Forbidden("")
	}
	r, err := s.open(p.Storage, p.ID)
	if err != nil {
		return made, err
	}
	o := git.MergeOptions{Ours: string(l.Old), Theirs: string(l.Head), Author: s.signature(by), Committer: s.signature(by)}
	tip := l.Head
	if l.Squash {
		one := o
		one.Author, one.Message = l.Author, l.SquashMessage
		one.Author.When = o.Committer.When
		c, err := r.Squash(ctx, one)
		if err != nil {
			return made, unmerged(err)
		}
		tip, made.Squash, o.Theirs = c.ID, c.ID, string(c.ID)
	}
	if !l.Forward {
		o.Message = l.MergeMessage
		c, err := r.Merge(ctx, o)
		if err != nil {
			return made, unmerged(err)
		}
		tip, made.Merge = c.ID, c.ID
	}
	if tip == l.Old {
		return made, unmerged(git.ErrNothing)
	}
	return made, s.moveBy(ctx, by, p, r, overMerge, journal{About: l.About(made)}, git.Update{Ref: git.Heads + l.Branch, Old: l.Old, New: tip})
}

// unmerged converts the error of a merge that is not possible.
func unmerged(err error) error {
	if errors.Is(err, git.ErrConflict) || errors.Is(err, git.ErrNothing) {
		return errs.Unprocessable("Branch cannot be merged").Because(err)
	}
	return missing(err, "Commit")
}

// TryMerge creates the commit that a merge would create, and stores it under a
// ref. Unprocessable if there are conflicts.
func (s *Service) TryMerge(ctx context.Context, p *project.Project, ref string, ours, theirs git.OID, by git.Signature, message string) (git.OID, error) {
	var made git.OID
	err := s.hold(ctx, p, func(r git.Repo) error {
		c, err := r.Merge(ctx, git.MergeOptions{Ours: string(ours), Theirs: string(theirs), Author: by, Committer: by, Message: message})
		if err != nil {
			return unmerged(err)
		}
		made = c.ID
		if err := r.UpdateRefs(ctx, []git.Update{{Ref: ref, New: c.ID}}); err != nil {
			return fmt.Errorf("keep merge %s: %w", c.ID, passing(err))
		}
		return nil
	})
	return made, err
}

// Conflicts returns the conflicts of a merge of two commits, with the contents of
// files of at most maxSize bytes. NotFound.
func (s *Service) Conflicts(ctx context.Context, p *project.Project, ours, theirs git.OID, maxSize int64) ([]git.Conflict, error) {
	r, err := s.open(p.Storage, p.ID)
	if err != nil {
		return nil, err
	}
	list, err := r.Conflicts(ctx, ours, theirs, maxSize)
	return list, missing(err, "Commit")
}

// Resolve merges a commit of the target project into a branch, which must be at
// head, with the contents of the files that have conflicts. The actor may push to
// the branch. Unprocessable if a conflict is not resolved; the other errors are those
// of a push.
func (s *Service) Resolve(ctx context.Context, by actor.Actor, target *project.Project, theirs git.OID, source project.Ref, branch string, head git.OID, message string, files map[string][]byte) error {
	p, r, err := s.writeSome(ctx, by, source)
	if err != nil {
		return err
	}
	from, err := s.open(target.Storage, target.ID)
	if err != nil {
		return err
	}
	if err := r.Take(ctx, from, theirs); err != nil {
		return missing(err, "Commit")
	}
	made, err := r.MergeResolved(ctx, git.MergeOptions{Ours: string(head), Theirs: string(theirs), Author: s.signature(by), Committer: s.signature(by), Message: message}, files)
	if err != nil {
		return unmerged(err)
	}
	return s.move(ctx, by, p, r, git.Update{Ref: git.Heads + branch, Old: head, New: made.ID})
}

// Rebase rebases a branch, which must be at head, onto a commit of the target
// project, for an actor who may push to the branch. options are the push
// options. Merge commits are left out, and commits that become empty. about returns
// the text that is passed on to the event; same is set if the rebased branch has the
// content that a merge of head would have, which merge commits can prevent.
// Unprocessable if there are conflicts; the other errors are those of a push.
func (s *Service) Rebase(ctx context.Context, by actor.Actor, target *project.Project, onto git.OID, source project.Ref, branch string, head git.OID, options []string, about func(same bool) (string, error)) error {
	p, r, err := s.writeSome(ctx, by, source)
	if err != nil {
		return err
	}
	from, err := s.open(target.Storage, target.ID)
	if err != nil {
		return err
	}
	if err := r.Take(ctx, from, onto); err != nil {
		return missing(err, "Commit")
	}
	commits, err := r.Log(ctx, git.LogOptions{From: []string{string(head)}, Not: []string{string(onto)}, NoMerges: true, Order: git.Topo})
	if err != nil {
		return missing(err, "Commit")
	}
	tip := onto
	for _, c := range slices.Backward(commits) {
		made, err := r.CherryPick(ctx, git.MergeOptions{
			Ours: string(tip), Theirs: string(c.ID), Author: c.Author, Committer: s.signature(by), Message: c.Message,
		})
		if errors.Is(err, git.ErrNothing) {
			continue
		}
		if err != nil {
			return unmerged(err)
		}
		tip = made.ID
	}
	if tip == head {
		return nil
	}
	same, err := s.mergesTo(ctx, by, r, onto, head, tip)
	if err != nil {
		return err
	}
	text, err := about(same)
	if err != nil {
		return err
	}
	return s.moveBy(ctx, by, p, r, overWeb, journal{Options: options, About: text}, git.Update{Ref: git.Heads + branch, Old: head, New: tip})
}

// mergesTo reports whether a merge of two commits has the tree of a third one.
func (s *Service) mergesTo(ctx context.Context, by actor.Actor, r git.Repo, ours, theirs, result git.OID) (bool, error) {
	merged := ours
	c, err := r.Squash(ctx, git.MergeOptions{Ours: string(ours), Theirs: string(theirs), Author: s.signature(by), Committer: s.signature(by)})
	switch {
	case errors.Is(err, git.ErrConflict):
		return false, nil
	case err == nil:
		merged = c.ID
	case !errors.Is(err, git.ErrNothing):
		return false, unmerged(err)
	}
	want, err := r.ResolveTree(ctx, string(merged))
	if err != nil {
		return false, missing(err, "Commit")
	}
	got, err := r.ResolveTree(ctx, string(result))
	return got == want, missing(err, "Commit")
}
