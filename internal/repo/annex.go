package repo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// Annex is a repository beside those of the projects' code: that of a snippet,
// or of a wiki.
type Annex struct {
	ID   int64
	Kind AnnexKind
	// Whose it is: one of them is set.
	SnippetID, ProjectID, NamespaceID *int64
	Storage                           string
	ReadOnly                          bool  // it is being moved
	Size                              int64 // bytes, as last measured
}

// AnnexKind says what an annex holds.
type AnnexKind string

// The kinds of annexes.
const (
	SnippetAnnex AnnexKind = "snippet"
	WikiAnnex    AnnexKind = "wiki"
)

// Keeper is the feature that has the annexes of a kind: it says who may do what
// there, and follows what is done.
type Keeper struct {
	// Open gives the annex that a path names to an actor who may read it or,
	// with write, push to it. ok is false for a path that names none of this
	// kind.
	Open func(ctx context.Context, by actor.Actor, path string, write bool) (a *Annex, ok bool, err error)
	// Check says in Refused why a change may not be.
	Check func(ctx context.Context, a *Annex, push *git.Push) error
	// Follow looks at what a push did, and gives what is to be recorded of it
	// in one transaction.
	Follow func(ctx context.Context, p AnnexPush) (record func(context.Context, *db.Tx) error, err error)
}

// AnnexPush is a push to an annex that was done.
type AnnexPush struct {
	Annex   *Annex
	Repo    git.Repo
	By      actor.Actor
	Changes []Change
	At      time.Time
}

// Keep registers the feature that has annexes of a kind; it is called while the
// program is put together.
func (s *Service) Keep(kind AnnexKind, k Keeper) { s.keepers[kind] = k }

// AddAnnex makes the row of an annex, in the transaction that makes its owner.
// The repository itself is made when something comes.
func (s *Service) AddAnnex(ctx context.Context, tx *db.Tx, a *Annex) error {
	if a.Storage == "" {
		a.Storage = "default"
	}
	if err := insertAnnex(ctx, tx, a, s.Now()); err != nil {
		return fmt.Errorf("add annex: %w", err)
	}
	return nil
}

// WikiOf finds the annex of the wiki of a project or a group; nil when there is
// none yet.
func (s *Service) WikiOf(ctx context.Context, projectID, namespaceID *int64) (*Annex, error) {
	column, id := "project_id", projectID
	if projectID == nil {
		column, id = "namespace_id", namespaceID
	}
	return orNone(findAnnex(ctx, s.DB, column, *id))
}

// BeginWiki gives the annex of the wiki of a project or a group, and makes it if
// there is none yet. While the repository of the project is being moved nobody
// can write to the new one either.
func (s *Service) BeginWiki(ctx context.Context, projectID, namespaceID *int64) (*Annex, error) {
	table, column, id := "projects", "project_id", projectID
	if projectID == nil {
		table, column, id = "namespaces", "namespace_id", namespaceID
	}
	var a *Annex
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, table, *id); err != nil {
			return err
		}
		var at place
		if projectID != nil { // it lies beside the code
			var err error
			if at, err = findPlace(ctx, tx, table, *id); err != nil {
				return err
			}
		}
		var err error
		if a, err = findAnnex(ctx, tx, column, *id); !errors.Is(err, db.ErrNoRows) {
			return err
		}
		a = &Annex{Kind: WikiAnnex, ProjectID: projectID, NamespaceID: namespaceID, Storage: at.storage, ReadOnly: at.readOnly}
		return s.AddAnnex(ctx, tx, a)
	})
	if err != nil {
		return nil, fmt.Errorf("begin wiki: %w", err)
	}
	return a, nil
}

// SnippetAnnex finds the annex of a snippet; nil when there is none.
func (s *Service) SnippetAnnex(ctx context.Context, snippetID int64) (*Annex, error) {
	return orNone(findAnnex(ctx, s.DB, "snippet_id", snippetID))
}

// SnippetAnnexes finds the annexes of snippets, by the ids of those.
func (s *Service) SnippetAnnexes(ctx context.Context, ids []int64) (map[int64]*Annex, error) {
	found := map[int64]*Annex{}
	if len(ids) == 0 {
		return found, nil
	}
	list, err := findSnippetAnnexes(ctx, s.DB, ids)
	if err != nil {
		return nil, fmt.Errorf("find annexes: %w", err)
	}
	for _, a := range list {
		found[*a.SnippetID] = a
	}
	return found, nil
}

func orNone(a *Annex, err error) (*Annex, error) {
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find annex: %w", err)
	}
	return a, nil
}

// OpenAnnex gives a handle on the repository of an annex, which need not exist.
// Who may read it was asked by its keeper.
func (s *Service) OpenAnnex(a *Annex) (git.Repo, error) {
	return s.at(a.Storage, annexPath(a.Kind, a.ID))
}

// annexPath is where an annex lies in its storage.
func annexPath(kind AnnexKind, id int64) string {
	return filepath.Join(string(kind)+"s", fmt.Sprintf("%02x", id%256), strconv.FormatInt(id, 10)+".git")
}

// ensureAnnex makes the repository of an annex if it is not there.
func (s *Service) ensureAnnex(ctx context.Context, a *Annex) (git.Repo, error) {
	r, err := s.OpenAnnex(a)
	if err != nil {
		return git.Repo{}, err
	}
	if _, err := r.DefaultBranch(); !errors.Is(err, git.ErrNoRepository) {
		return r, err
	}
	err = s.holdAnnex(ctx, a, func(now git.Repo) error { // it may have moved since a was read
		r = now
		return s.make(ctx, r, UsualBranch)
	})
	if errors.Is(err, project.ErrMoving) {
		err = s.make(ctx, r, UsualBranch) // as ensure does it
	}
	if err != nil {
		return git.Repo{}, fmt.Errorf("make annex %d: %w", a.ID, err)
	}
	return r, nil
}

// Missing answers for a thing that git does not find in an annex: NotFound of
// the thing. What passes is Unavailable, and others are faults.
func Missing(err error, thing string) error { return missing(err, thing) }

// AnnexCommit is a commit on the default branch of an annex.
type AnnexCommit struct {
	Message string
	// Actions gives what is to be changed on top of a commit, which is empty
	// for the first. It is asked again when somebody else was quicker.
	Actions func(ctx context.Context, r git.Repo, parent string) ([]git.Action, error)
}

// maxCommitTries is how often a commit is made anew because somebody else was
// quicker.
const maxCommitTries = 50

// CommitAnnex makes a commit for an actor whom the keeper lets write. What
// changes nothing makes none. Invalid when an action does not fit what is there;
// TooLarge; Forbidden while it is being moved; Conflict when others do not let it
// come to its turn.
func (s *Service) CommitAnnex(ctx context.Context, by actor.Actor, a *Annex, c AnnexCommit) error {
	if a.ReadOnly {
		return errs.Forbidden(project.BeingMoved).Because(project.ErrMoving)
	}
	r, err := s.ensureAnnex(ctx, a)
	if err != nil {
		return err
	}
	for try := range maxCommitTries {
		err := s.commitAnnex(ctx, by, a, r, c)
		if !errors.Is(err, git.ErrConflict) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(try) * time.Millisecond):
		}
	}
	return errs.Conflict("Others are changing this all the time. Please try again.")
}

func (s *Service) commitAnnex(ctx context.Context, by actor.Actor, a *Annex, r git.Repo, c AnnexCommit) error {
	branch, err := r.DefaultBranch()
	if err != nil {
		return err
	}
	update := git.Update{Ref: git.Heads + branch, Old: git.ZeroOID}
	parent, tree := "", git.EmptyTree
	tip, err := r.Ref(ctx, update.Ref)
	switch {
	case err == nil:
		before, err := r.Commit(ctx, string(tip.Target))
		if err != nil {
			return passing(err)
		}
		update.Old, parent, tree = tip.ID, string(tip.Target), before.TreeID
	case !errors.Is(err, git.ErrNotFound):
		return passing(err)
	}
	actions, err := c.Actions(ctx, r, parent)
	if err != nil {
		return err
	}
	if err := s.checkActions(ctx, actions); err != nil {
		return err
	}
	who := s.signature(by)
	made, err := r.CommitChanges(ctx, git.ChangeOptions{Parent: parent, Actions: actions, Author: who, Committer: who, Message: c.Message})
	if err != nil {
		return actionError(err)
	}
	if made.TreeID == tree && parent != "" {
		return nil
	}
	update.New = made.ID
	return s.moveAnnex(ctx, by, a, r, update)
}

// checkActions holds what comes by the API to the limit of a push.
func (s *Service) checkActions(ctx context.Context, actions []git.Action) error {
	files := make([]FileAction, len(actions))
	for i, a := range actions {
		files[i].Content = a.Content
	}
	return s.checkSize(ctx, files)
}

// moveAnnex moves the default branch: as move does it for projects. ErrConflict
// when it is elsewhere by now.
func (s *Service) moveAnnex(ctx context.Context, by actor.Actor, a *Annex, r git.Repo, u git.Update) error {
	to := annexTarget{s, a, r, by}
	push := &git.Push{Repo: r, Atomic: true, Changes: []*git.RefChange{{Ref: u.Ref, Old: u.Old, New: u.New}}}
	if err := to.check(ctx, push); err != nil {
		return err
	}
	if why := push.Changes[0].Refused; why != "" {
		return errs.Refused("%s", why)
	}
	ctx = context.WithoutCancel(ctx) // half of it may be done
	begun := journal{Changes: changesOf(push), Mark: newMark()}
	id, err := to.begin(ctx, begun)
	if err != nil {
		return err
	}
	if err := r.UpdateRefsAs(ctx, begun.Mark, []git.Update{u}); err != nil {
		return errors.Join(err, to.land(ctx, id, begun))
	}
	return to.finish(ctx, id, begun)
}

// BundleAnnex writes all that is in an annex as a git bundle. It is false, and
// nothing was written, when there is nothing in it. Who may read it was asked by
// its keeper.
func (s *Service) BundleAnnex(ctx context.Context, a *Annex, w io.Writer) (bool, error) {
	r, err := s.OpenAnnex(a)
	if err != nil {
		return false, err
	}
	err = r.Bundle(ctx, w)
	if errors.Is(err, git.ErrNotFound) || errors.Is(err, git.ErrNoRepository) {
		return false, nil
	}
	return err == nil, passing(err)
}

// FillAnnex takes what is in a git bundle into an annex that has nothing in it.
// Nobody is told of it. branch becomes the default one, unless it is empty.
// Invalid for a file that is no whole bundle; Unavailable while it is being moved.
func (s *Service) FillAnnex(ctx context.Context, a *Annex, branch string, bundle io.Reader) error {
	if _, err := s.ensureAnnex(ctx, a); err != nil {
		return err
	}
	if err := s.holdAnnex(ctx, a, func(r git.Repo) error { return s.fill(ctx, r, branch, bundle) }); err != nil {
		return fmt.Errorf("fill annex %d: %w", a.ID, err)
	}
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := touchAnnex(ctx, tx, a.ID, s.Now()); err != nil {
			return err
		}
		return s.addAnnexTidying(ctx, tx, a.ID, false)
	})
}

func (s *Service) fill(ctx context.Context, r git.Repo, branch string, bundle io.Reader) error {
	_, object, err := s.pushLimits(ctx)
	if err != nil {
		return err
	}
	err = r.Unbundle(ctx, bundle, object)
	if errors.Is(err, git.ErrTooLarge) {
		return errs.Invalid("the repository cannot be read: an object exceeds the maximum size").Because(err)
	}
	if errors.Is(err, git.ErrBundle) {
		return errs.Invalid("the repository can not be read: it is no whole git bundle").Because(err)
	}
	if err != nil || branch == "" {
		return passing(err)
	}
	err = r.SetDefaultBranch(ctx, branch)
	if errors.Is(err, git.ErrBadRef) {
		return errs.Invalid("%.100q is not the name of a branch", branch).Because(err)
	}
	return err
}
