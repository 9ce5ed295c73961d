package repo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/git/trailer"
	"svc/internal/project"
)

// NewCommit has the fields of a new commit on a branch.
type NewCommit struct {
	Branch string
	// StartBranch or StartSHA is the start of a new branch.
	StartBranch  string
	StartSHA     string
	StartProject *project.Ref // project of the start, if it is another one of the fork network
	Force        bool         // start there even if the branch exists
	Message      string
	AuthorName   string // default: the name of the actor
	AuthorEmail  string
	Actions      []FileAction
	Expect       git.OID // expected commit of the branch; empty: any
}

// FileAction is a change to one file.
type FileAction struct {
	Kind       git.ActionKind
	Path       string
	From       string // previous path, for a move
	Content    []byte
	HasContent bool
	LastCommit string // expected last commit of the file; empty: any
	Executable *bool
}

// CreateCommit creates a commit with all actions on a branch, for Developers
// and above, subject to branch protection. Invalid, with the messages that API
// clients know, if an action cannot be applied; Conflict if the branch has
// moved; TooLarge.
func (s *Service) CreateCommit(ctx context.Context, by actor.Actor, ref project.Ref, n NewCommit, stats bool) (*project.Project, *CommitDetail, error) {
	p, r, err := s.writeSome(ctx, by, ref)
	if err != nil {
		return nil, nil, err
	}
	if err := s.checkSize(ctx, n.Actions); err != nil {
		return nil, nil, err
	}
	b, err := s.base(ctx, by, p, r, n)
	if err != nil {
		return nil, nil, err
	}
	if n.Expect != "" && n.Expect != b.old {
		return nil, nil, errs.Conflict("The branch %.200q has new commits.", n.Branch)
	}
	actions, err := gitActions(ctx, r, b.parent, n.Actions)
	if err != nil {
		return nil, nil, err
	}
	author := s.signature(by)
	committer := author
	if n.AuthorName != "" {
		author.Name = n.AuthorName
	}
	if n.AuthorEmail != "" {
		author.Email = n.AuthorEmail
	}
	made, err := r.CommitChanges(ctx, git.ChangeOptions{Parent: b.parent, Actions: actions, Author: author, Committer: committer, Message: n.Message})
	if err != nil {
		return nil, nil, actionError(err)
	}
	if err := s.move(ctx, by, p, r, git.Update{Ref: git.Heads + n.Branch, Old: b.old, New: made.ID}); err != nil {
		return nil, nil, err
	}
	d, err := s.detail(ctx, r, made, stats)
	return p, d, err
}

// checkSize checks the size limits of a push for changes through the API.
func (s *Service) checkSize(ctx context.Context, actions []FileAction) error {
	limit, object, err := s.pushLimits(ctx)
	if err != nil {
		return err
	}
	var size int64
	for _, a := range actions {
		size += int64(len(a.Content))
		if object > 0 && int64(len(a.Content)) > object {
			return errs.TooLarge("The file %.200q exceeds the maximum object size.", a.Path)
		}
	}
	if limit > 0 && size > limit {
		return errs.TooLarge("The files are larger than a push may be.")
	}
	return nil
}

// base is the parent of a new commit, empty for the first commit, and the
// current commit of its branch.
type base struct {
	parent string
	old    git.OID
}

func (s *Service) base(ctx context.Context, by actor.Actor, p *project.Project, r git.Repo, n NewCommit) (base, error) {
	if err := git.CheckRef(git.Heads + n.Branch); err != nil {
		return base{}, errs.Refused("Branch name is invalid").Because(err)
	}
	tip, err := r.Ref(ctx, git.Heads+n.Branch)
	there := err == nil
	if err != nil && !errors.Is(err, git.ErrNotFound) {
		return base{}, passing(err)
	}
	start := n.StartSHA
	if start == "" && n.StartBranch != n.Branch {
		start = n.StartBranch
	}
	switch {
	case start == "" && there:
		return base{string(tip.Target), tip.ID}, nil
	case start == "":
		branches, err := r.RefNames(ctx, git.Heads, nil)
		if err == nil && len(branches) > 0 {
			err = errs.Refused("You can only create or edit files when you are on a branch")
		}
		return base{"", git.ZeroOID}, passing(err)
	case there && !n.Force:
		return base{}, errs.Refused("A branch called '%s' already exists. Switch to that branch in order to make changes", n.Branch)
	}
	id, err := s.startOf(ctx, by, p, r, n, start)
	if err != nil {
		return base{}, err
	}
	if there {
		return base{string(id), tip.ID}, nil
	}
	return base{string(id), git.ZeroOID}, nil
}

// startOf returns the start commit of a new branch.
func (s *Service) startOf(ctx context.Context, by actor.Actor, p *project.Project, r git.Repo, n NewCommit, start string) (git.OID, error) {
	if n.StartSHA == "" {
		start = git.Heads + start
	}
	from, other := seen(by, p, r), p
	if n.StartProject != nil {
		var err error
		if other, from, err = s.read(ctx, by, *n.StartProject); err != nil {
			return "", err
		}
		same, err := s.Projects.SameNetwork(ctx, p, other)
		if err != nil {
			return "", err
		}
		if other.ID != p.ID && !same {
			return "", errs.Refused("Project %d is not in the fork network of this project", other.ID)
		}
	}
	id, err := from.ResolveCommit(ctx, start)
	if errs.Is(missing(err, "Commit"), errs.KindNotFound) {
		return "", errs.Refused("You can only create or edit files when you are on a branch").Because(err)
	}
	if err != nil {
		return "", passing(err)
	}
	if other.ID != p.ID {
		if err := r.Take(ctx, from, id); err != nil {
			return "", fmt.Errorf("take commits of project %d: %w", other.ID, passing(err))
		}
	}
	return id, nil
}

// gitActions converts actions for package git, and checks the expected last
// commits.
func gitActions(ctx context.Context, r git.Repo, parent string, list []FileAction) ([]git.Action, error) {
	var actions []git.Action
	for _, a := range list {
		if a.LastCommit != "" && parent != "" && a.Kind != git.Create {
			if err := unchanged(ctx, r, parent, a); err != nil {
				return nil, err
			}
		}
		next := git.Action{Kind: a.Kind, Path: a.Path, From: a.From, Content: a.Content, HasContent: a.HasContent}
		if a.Executable != nil {
			next.Executable = *a.Executable
		}
		if a.Kind == git.Move && a.From == "" {
			return nil, errs.Refused("You must provide a previous path")
		}
		actions = append(actions, next)
		if a.Executable != nil && (a.Kind == git.Modify || a.Kind == git.Move) {
			actions = append(actions, git.Action{Kind: git.Chmod, Path: a.Path, Executable: *a.Executable})
		}
	}
	return actions, nil
}

// unchanged returns an error if the last commit of a file is not the expected
// one.
func unchanged(ctx context.Context, r git.Repo, parent string, a FileAction) error {
	name := a.Path
	if a.Kind == git.Move && a.From != "" {
		name = a.From
	}
	last, err := lastCommit(ctx, r, parent, name)
	if err != nil {
		return err
	}
	if string(last) != a.LastCommit {
		return errs.Refused("You are attempting to update a file that has changed since you started editing it: %s", name)
	}
	return nil
}

// lastCommit returns the last commit of a file; empty if the file does not
// exist.
func lastCommit(ctx context.Context, r git.Repo, rev, name string) (git.OID, error) {
	dir, base := filepath.Split(name)
	found, err := r.LastCommits(ctx, rev, dir, []string{base})
	if err != nil {
		return "", missing(err, "File")
	}
	if c := found[base]; c != nil {
		return c.ID, nil
	}
	return "", nil
}

// actionError converts an error of an action to a message that API clients
// know.
func actionError(err error) error {
	var why string
	switch {
	case errors.Is(err, git.ErrExists):
		why = "A file with this name already exists"
	case errors.Is(err, git.ErrNotFound):
		why = "A file with this name doesn't exist"
	case errors.Is(err, git.ErrBadPath):
		why = "The path of a file is invalid"
	default:
		return passing(err)
	}
	return errs.Refused("%s", why).Because(err)
}

// Pick is a commit to cherry-pick onto a branch, or to revert there.
type Pick struct {
	Rev     string
	Branch  string
	Message string // replaces the default message
	DryRun  bool   // only check whether it is possible
	Into    string // a new branch for the commit, which starts at Branch; empty: Branch itself
}

// CherryPick applies the change of a commit to a branch, for Developers and
// above, subject to branch protection. With DryRun the commit is nil. NotFound
// if the commit or the branch does not exist; Invalid if the change cannot be
// applied.
func (s *Service) CherryPick(ctx context.Context, by actor.Actor, ref project.Ref, n Pick) (*project.Project, *git.Commit, error) {
	return s.pick(ctx, by, ref, n, false)
}

// Revert reverts the change of a commit on a branch, like CherryPick.
func (s *Service) Revert(ctx context.Context, by actor.Actor, ref project.Ref, n Pick) (*project.Project, *git.Commit, error) {
	return s.pick(ctx, by, ref, n, true)
}

func (s *Service) pick(ctx context.Context, by actor.Actor, ref project.Ref, n Pick, undo bool) (*project.Project, *git.Commit, error) {
	p, r, err := s.writeSome(ctx, by, ref)
	if err != nil {
		return nil, nil, err
	}
	c, err := seen(by, p, r).Commit(ctx, n.Rev)
	if err != nil {
		return nil, nil, missing(err, "Commit")
	}
	tip, err := r.Ref(ctx, git.Heads+n.Branch)
	if err != nil {
		return nil, nil, missing(err, "Branch")
	}
	update := git.Update{Ref: tip.Name, Old: tip.ID}
	if n.Into != "" {
		if update, err = newBranch(ctx, r, n.Into); err != nil {
			return nil, nil, err
		}
	}
	o := git.MergeOptions{Ours: string(tip.Target), Theirs: string(c.ID), Author: s.signature(by), Committer: s.signature(by), Message: n.Message}
	if len(c.ParentIDs) > 1 {
		o.Mainline = 1
	}
	verb, do := "cherry-pick", r.CherryPick
	if undo {
		verb, do = "revert", r.Revert
		if o.Message == "" {
			o.Message = fmt.Sprintf("Revert %q\n\nThis reverts commit %s", c.Title, c.ID)
		}
	} else {
		o.Author = c.Author
		if o.Message == "" {
			o.Message = fmt.Sprintf("%s\n(cherry picked from commit %s)", ending(c.Message), c.ID)
		}
	}
	made, err := do(ctx, o)
	switch {
	case errors.Is(err, git.ErrConflict):
		return nil, nil, unpicked(verb).Coded("conflict").Because(err)
	case errors.Is(err, git.ErrNothing):
		return nil, nil, unpicked(verb).Coded("empty").Because(err)
	case err != nil:
		return nil, nil, missing(err, "Commit")
	case n.DryRun:
		return p, nil, nil
	}
	update.New = made.ID
	return p, made, s.move(ctx, by, p, r, update)
}

// newBranch returns the update that creates a branch. Invalid for a name that a
// branch cannot have; Conflict if it exists.
func newBranch(ctx context.Context, r git.Repo, name string) (git.Update, error) {
	if err := git.CheckRef(git.Heads + name); err != nil {
		return git.Update{}, errs.Refused("Branch name is invalid").Because(err)
	}
	_, err := r.Ref(ctx, git.Heads+name)
	if err == nil {
		return git.Update{}, errs.Conflict("A branch called '%s' already exists.", name)
	}
	if !errors.Is(err, git.ErrNotFound) {
		return git.Update{}, passing(err)
	}
	return git.Update{Ref: git.Heads + name, Old: git.ZeroOID}, nil
}

// unpicked is the error for a change that cannot be applied, with the message
// that API clients know.
func unpicked(verb string) *errs.Error {
	done := map[string]string{"cherry-pick": "cherry-picked", "revert": "reverted"}[verb]
	return errs.Refused("Sorry, we cannot %s this commit automatically. This commit may already have been %s, "+
		"or a more recent commit may have updated some of its content.", verb, done)
}

// ending prepares a message for another trailer: it joins existing trailers, or
// else starts a new paragraph.
func ending(message string) string {
	for len(message) > 0 && message[len(message)-1] == '\n' {
		message = message[:len(message)-1]
	}
	if len(trailer.Parse(message)) > 0 {
		return message
	}
	return message + "\n"
}
