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

// AuxRepo is an auxiliary repository: the Git repository of a snippet or a wiki.
type AuxRepo struct {
	ID   int64
	Kind AuxRepoKind
	// The owner: exactly one is set.
	SnippetID, ProjectID, NamespaceID *int64
	Storage                           string
	ReadOnly                          bool  // it is being moved
	Size                              int64 // bytes, as last measured
}

// AuxRepoKind is what an auxiliary repository contains.
type AuxRepoKind string

// The kinds of auxiliary repositories.
const (
	SnippetAuxRepo AuxRepoKind = "snippet"
	WikiAuxRepo    AuxRepoKind = "wiki"
)

// AuxRepoOwner is the feature that owns the auxiliary repositories of a kind.
// It checks permissions and processes pushes.
type AuxRepoOwner struct {
	// Open returns the auxiliary repository at a path to an actor who may read
	// it or, with write, push to it. ok is false if the path is not one of this
	// kind.
	Open func(ctx context.Context, by actor.Actor, path string, write bool) (a *AuxRepo, ok bool, err error)
	// Check sets Refused of the changes that are not allowed.
	Check func(ctx context.Context, a *AuxRepo, push *git.Push) error
	// Follow examines a push, whose objects are in the repository, and returns a
	// function that records the result in a transaction. The refs may be updated later.
	Follow func(ctx context.Context, p AuxRepoPush) (record func(context.Context, *db.Tx) error, err error)
}

// AuxRepoPush is a push to an auxiliary repository.
type AuxRepoPush struct {
	AuxRepo *AuxRepo
	Repo    git.Repo
	By      actor.Actor
	Changes []Change
	// Branch is the default branch after the push, Tip the object it refers to, empty
	// if it does not exist.
	Branch string
	Tip    git.OID
	At     time.Time
}

// OwnAuxRepos registers the owner of a kind of auxiliary repositories. It is
// called at start-up.
func (s *Service) OwnAuxRepos(kind AuxRepoKind, k AuxRepoOwner) { s.auxRepoOwners[kind] = k }

// AddAuxRepo inserts the row of an auxiliary repository, in the transaction
// that creates its owner. The repository itself is created on first use.
func (s *Service) AddAuxRepo(ctx context.Context, tx *db.Tx, a *AuxRepo) error {
	if a.Storage == "" {
		var err error
		if a.Storage, err = s.Projects.NewStorage(ctx); err != nil {
			return fmt.Errorf("add auxiliary repository: %w", err)
		}
	}
	if err := insertAuxRepo(ctx, tx, a, s.Now()); err != nil {
		return fmt.Errorf("add auxiliary repository: %w", err)
	}
	return nil
}

// WikiOf finds the auxiliary repository of the wiki of a project or group; nil
// if there is none yet.
func (s *Service) WikiOf(ctx context.Context, projectID, namespaceID *int64) (*AuxRepo, error) {
	column, id := "project_id", projectID
	if projectID == nil {
		column, id = "namespace_id", namespaceID
	}
	return orNone(findAuxRepo(ctx, s.DB, column, *id))
}

// BeginWiki returns the auxiliary repository of the wiki of a project or group,
// and creates its row if there is none. While the repository of the project is
// being moved, the new one is read-only too.
func (s *Service) BeginWiki(ctx context.Context, projectID, namespaceID *int64) (*AuxRepo, error) {
	table, column, id := "projects", "project_id", projectID
	if projectID == nil {
		table, column, id = "namespaces", "namespace_id", namespaceID
	}
	var a *AuxRepo
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, table, *id); err != nil {
			return err
		}
		var at place
		if projectID != nil { // on the same storage as the code
			var err error
			if at, err = findPlace(ctx, tx, table, *id); err != nil {
				return err
			}
		}
		var err error
		if a, err = findAuxRepo(ctx, tx, column, *id); !errors.Is(err, db.ErrNoRows) {
			return err
		}
		a = &AuxRepo{Kind: WikiAuxRepo, ProjectID: projectID, NamespaceID: namespaceID, Storage: at.storage, ReadOnly: at.readOnly}
		return s.AddAuxRepo(ctx, tx, a)
	})
	if err != nil {
		return nil, fmt.Errorf("begin wiki: %w", err)
	}
	return a, nil
}

// SnippetAuxRepo finds the auxiliary repository of a snippet; nil if there is
// none.
func (s *Service) SnippetAuxRepo(ctx context.Context, snippetID int64) (*AuxRepo, error) {
	return orNone(findAuxRepo(ctx, s.DB, "snippet_id", snippetID))
}

// SnippetAuxRepos finds the auxiliary repositories of snippets, by snippet ID.
func (s *Service) SnippetAuxRepos(ctx context.Context, ids []int64) (map[int64]*AuxRepo, error) {
	found := map[int64]*AuxRepo{}
	if len(ids) == 0 {
		return found, nil
	}
	list, err := findSnippetAuxRepos(ctx, s.DB, ids)
	if err != nil {
		return nil, fmt.Errorf("find auxiliary repositories: %w", err)
	}
	for _, a := range list {
		found[*a.SnippetID] = a
	}
	return found, nil
}

func orNone(a *AuxRepo, err error) (*AuxRepo, error) {
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find auxiliary repository: %w", err)
	}
	return a, nil
}

// OpenAuxRepo returns a handle on an auxiliary repository, which need not
// exist. The caller must have checked the permissions.
func (s *Service) OpenAuxRepo(a *AuxRepo) (git.Repo, error) {
	return s.at(a.Storage, auxRepoPath(a.Kind, a.ID))
}

// auxRepoPath returns the path of an auxiliary repository in its storage.
func auxRepoPath(kind AuxRepoKind, id int64) string {
	return filepath.Join(string(kind)+"s", fmt.Sprintf("%02x", id%256), strconv.FormatInt(id, 10)+".git")
}

// ensureAuxRepo creates an auxiliary repository if it does not exist.
func (s *Service) ensureAuxRepo(ctx context.Context, a *AuxRepo) (git.Repo, error) {
	r, err := s.OpenAuxRepo(a)
	if err != nil {
		return git.Repo{}, err
	}
	if _, err := r.DefaultBranch(ctx); !errors.Is(err, git.ErrNoRepository) {
		return r, err
	}
	err = s.holdAuxRepo(ctx, a, func(now git.Repo) error { // the storage may have changed since a was read
		r = now
		return s.make(ctx, r, UsualBranch)
	})
	if errors.Is(err, project.ErrMoving) {
		err = s.make(ctx, r, UsualBranch) // as in ensure
	}
	if err != nil {
		return git.Repo{}, fmt.Errorf("make auxiliary repository %d: %w", a.ID, err)
	}
	return r, nil
}

// Missing converts errors of git for an auxiliary repository: not found to
// NotFound, temporary ones to Unavailable. Other errors are returned unchanged.
func Missing(err error, thing string) error { return missing(err, thing) }

// AuxRepoCommit is a commit on the default branch of an auxiliary repository.
type AuxRepoCommit struct {
	Message string
	// Actions returns the changes on top of a parent commit, which is empty for
	// the first commit. It is called again after a conflict.
	Actions func(ctx context.Context, r git.Repo, parent string) ([]git.Action, error)
}

// maxCommitTries is the maximum number of attempts to commit after conflicts
// with other commits.
const maxCommitTries = 50

// CommitAuxRepo creates a commit for an actor who may write, as checked by the
// owner. A commit without changes is not created. Invalid if an action cannot
// be applied; TooLarge; Forbidden while the repository is being moved; Conflict
// after too many conflicts with other commits.
func (s *Service) CommitAuxRepo(ctx context.Context, by actor.Actor, a *AuxRepo, c AuxRepoCommit) error {
	if a.ReadOnly {
		return errs.Forbidden(project.BeingMoved).Because(project.ErrMoving)
	}
	r, err := s.ensureAuxRepo(ctx, a)
	if err != nil {
		return err
	}
	for try := range maxCommitTries {
		err := s.commitAuxRepo(ctx, by, a, r, c)
		if !errors.Is(err, git.ErrConflict) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(try) * time.Millisecond):
		}
	}
	return errs.Conflict("The repository is being changed by others. Please try again.")
}

func (s *Service) commitAuxRepo(ctx context.Context, by actor.Actor, a *AuxRepo, r git.Repo, c AuxRepoCommit) error {
	branch, err := r.DefaultBranch(ctx)
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
	return s.moveAuxRepo(ctx, by, a, r, update)
}

// checkActions checks the size limit of a push for changes through the API.
func (s *Service) checkActions(ctx context.Context, actions []git.Action) error {
	files := make([]FileAction, len(actions))
	for i, a := range actions {
		files[i].Content = a.Content
	}
	return s.checkSize(ctx, files)
}

// moveAuxRepo updates the default branch, like move for projects. ErrConflict
// if the branch has moved.
func (s *Service) moveAuxRepo(ctx context.Context, by actor.Actor, a *AuxRepo, r git.Repo, u git.Update) error {
	to := auxRepoTarget{s: s, a: a, repo: r, by: by}
	push := &git.Push{Repo: r, Atomic: true, Changes: []*git.RefChange{{Ref: u.Ref, Old: u.Old, New: u.New}}}
	if err := to.check(ctx, push); err != nil {
		return err
	}
	if why := push.Changes[0].Refused; why != "" {
		return errs.Refused("%s", why)
	}
	ctx = context.WithoutCancel(ctx) // must not stop halfway
	begun := journal{Changes: changesOf(push), Mark: newMark()}
	if move := to.mover(); move != nil {
		return move(ctx, begun)
	}
	id, err := to.begin(ctx, begun)
	if err != nil {
		return err
	}
	defer s.alive(ctx, auxRepoPushTable, id)()
	if err := r.UpdateRefsAs(ctx, begun.Mark, []git.Update{u}); err != nil {
		return errors.Join(err, to.land(ctx, id, begun))
	}
	return to.finish(ctx, id, begun)
}

// BundleAuxRepo writes an auxiliary repository as a git bundle. It returns
// false and writes nothing if the repository is empty. The caller must have
// checked the permissions.
func (s *Service) BundleAuxRepo(ctx context.Context, a *AuxRepo, w io.Writer) (bool, error) {
	r, err := s.OpenAuxRepo(a)
	if err != nil {
		return false, err
	}
	err = r.Bundle(ctx, w)
	if errors.Is(err, git.ErrNotFound) || errors.Is(err, git.ErrNoRepository) {
		return false, nil
	}
	return err == nil, passing(err)
}

// FillAuxRepo imports a git bundle into an empty auxiliary repository, without
// events. branch becomes the default branch, unless it is empty. Invalid if the
// file is not a complete bundle; Unavailable while the repository is being
// moved.
func (s *Service) FillAuxRepo(ctx context.Context, a *AuxRepo, branch string, bundle io.Reader) error {
	if _, err := s.ensureAuxRepo(ctx, a); err != nil {
		return err
	}
	if err := s.holdAuxRepo(ctx, a, func(r git.Repo) error { return s.fill(ctx, r, branch, bundle) }); err != nil {
		return fmt.Errorf("fill auxiliary repository %d: %w", a.ID, err)
	}
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := touchAuxRepo(ctx, tx, a.ID, s.Now()); err != nil {
			return err
		}
		return s.addAuxRepoTidying(ctx, tx, a.ID, false)
	})
}

func (s *Service) fill(ctx context.Context, r git.Repo, branch string, bundle io.Reader) error {
	return s.unbundle(ctx, r, branch, func(limits git.BundleLimits) error { return r.Unbundle(ctx, bundle, limits) })
}

// unbundle fills a repository from a bundle with read, and sets its default branch, unless it
// is empty. The pack must not exceed the limits of a push and of a repository.
func (s *Service) unbundle(ctx context.Context, r git.Repo, branch string, read func(git.BundleLimits) error) error {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return err
	}
	push, object, err := s.pushLimits(ctx)
	if err != nil {
		return err
	}
	err = read(git.BundleLimits{Pack: lower(push, int64(settings.RepositoryMegabytes)<<20), Object: object})
	if errors.Is(err, git.ErrTooLarge) {
		return errs.Invalid("the repository cannot be read: it or an object in it exceeds the maximum size").Because(err)
	}
	if errors.Is(err, git.ErrBundle) {
		return errs.Invalid("the repository cannot be read: it is not a complete git bundle, or has refs or objects that cannot be imported").Because(err)
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
