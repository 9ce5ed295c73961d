package repo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// openAuxRepo opens the auxiliary repository at a path; ok is false if there is
// no such kind of path.
func (s *Service) openAuxRepo(ctx context.Context, by actor.Actor, path string, write bool) (a *AuxRepo, r git.Repo, ok bool, err error) {
	for _, k := range s.auxRepoOwners {
		a, ok, err := k.Open(ctx, by, path, write)
		if !ok {
			continue
		}
		if err != nil {
			return nil, git.Repo{}, true, err
		}
		if write && a.ReadOnly {
			return nil, git.Repo{}, true, errs.Forbidden(project.BeingMoved).Because(project.ErrMoving)
		}
		r, err := s.ensureAuxRepo(ctx, a)
		return a, r, true, err
	}
	return nil, git.Repo{}, false, nil
}

// target is the repository that a push goes to: of a project, or an auxiliary
// repository.
type target interface {
	// check applies the rules to each change.
	check(ctx context.Context, push *git.Push) error
	// begin records a push before it moves refs, unless mover does.
	begin(ctx context.Context, j journal) (int64, error)
	// table is the table of the row that begin inserts.
	table() string
	// finish records the completed push.
	finish(ctx context.Context, id int64, j journal) error
	// mover returns the function that updates refs and records the push in one
	// transaction, or nil if the refs are not in the database.
	mover() func(ctx context.Context, j journal) error
	// land determines from the refs which changes were made, and records them.
	land(ctx context.Context, id int64, j journal) error
	// hint shows the user messages about the push.
	hint(ctx context.Context, push *git.Push)
}

// projectTarget is the repository of a project.
type projectTarget struct {
	s    *Service
	p    *project.Project
	repo git.Repo
	by   actor.Actor
}

func (t projectTarget) hint(ctx context.Context, push *git.Push) { t.s.hint(ctx, t.by, t.p, push) }

// check first asks again whether the actor may push: the client may have begun long ago.
func (t projectTarget) check(ctx context.Context, push *git.Push) error {
	by, err := t.s.still(ctx, t.by)
	if err != nil {
		return refuseAll(push, err)
	}
	p, _, err := t.s.writeSome(ctx, by, project.RefTo(t.p.ID))
	if err != nil {
		return refuseAll(push, err)
	}
	return t.s.check(ctx, by, p, push, overGit)
}

// still returns an actor with the rights that their account has now. Forbidden if it may not
// be used any more.
func (s *Service) still(ctx context.Context, by actor.Actor) (actor.Actor, error) {
	if by.Deploy != nil || by.ID <= 0 {
		return by, nil
	}
	now, err := s.Users.As(ctx, by.ID)
	by.Admin = by.Admin && now.Admin
	return by, err
}

// refuseAll refuses the changes of a push whose actor is not allowed to push any more.
func refuseAll(push *git.Push, err error) error {
	if !errs.IsRefusal(err) {
		return err
	}
	why := "you are not allowed to push any more"
	if errors.Is(err, project.ErrMoving) {
		why = "the repository is being moved"
	}
	for _, c := range push.Changes {
		if c.Refused == "" {
			c.Refused = why
		}
	}
	return nil
}

func (t projectTarget) begin(ctx context.Context, j journal) (int64, error) {
	if inDatabase(t.repo) == nil {
		return t.s.begin(ctx, t.by, t.p, j)
	}
	// The transaction checks it again, but only here the reason is shown.
	return 0, t.s.checkWritable(ctx, "projects", t.p.ID, t.p.Storage)
}

func (projectTarget) table() string { return pushTable }

func (t projectTarget) mover() func(context.Context, journal) error {
	return mover(t.repo, t.prepare)
}

func (t projectTarget) finish(ctx context.Context, id int64, j journal) error {
	return t.s.finish(ctx, id, t.by, t.p, t.repo, j)
}

func (t projectTarget) land(ctx context.Context, id int64, j journal) error {
	return t.s.land(ctx, id, t.by, t.p, t.repo, j)
}

// auxRepoTarget is an auxiliary repository.
type auxRepoTarget struct {
	s    *Service
	a    *AuxRepo
	repo git.Repo
	by   actor.Actor
	path string // for a push by the git protocol, else empty
}

func (t auxRepoTarget) still(ctx context.Context) error {
	if t.path == "" {
		return nil
	}
	by, err := t.s.still(ctx, t.by)
	if err != nil {
		return err
	}
	_, _, ok, err := t.s.openAuxRepo(ctx, by, t.path, true)
	if err == nil && !ok {
		err = errs.NotFound("Repository")
	}
	return err
}

func (auxRepoTarget) hint(context.Context, *git.Push) {}

// check first asks again whether the actor may push, as for a project.
func (t auxRepoTarget) check(ctx context.Context, push *git.Push) error {
	if err := t.still(ctx); err != nil {
		return refuseAll(push, err)
	}
	head, err := push.Repo.DefaultBranch(ctx)
	if err != nil {
		return err
	}
	for _, c := range push.Changes {
		if c.Refused == "" {
			c.Refused = refuseRef(&project.Project{DefaultBranch: head}, c)
		}
	}
	return t.s.auxRepoOwners[t.a.Kind].Check(ctx, t.a, push)
}

func (t auxRepoTarget) begin(ctx context.Context, j journal) (int64, error) {
	if inDatabase(t.repo) != nil {
		return 0, t.s.checkWritable(ctx, "annexes", t.a.ID, t.a.Storage)
	}
	id, storage, err := t.s.enterAuxRepo(ctx, t.by, t.a.ID, j)
	if err == nil && storage != t.a.Storage {
		err = errors.Join(errs.Conflict(movedMessage), t.s.dropAuxRepo(ctx, id))
	}
	return id, err
}

func (auxRepoTarget) table() string { return auxRepoPushTable }

func (t auxRepoTarget) mover() func(context.Context, journal) error {
	return mover(t.repo, t.prepare)
}

func (t auxRepoTarget) finish(ctx context.Context, id int64, j journal) error {
	var refs []string
	for _, c := range j.Changes {
		refs = append(refs, c.Ref)
	}
	if _, err := adopt(ctx, t.repo, refs); err != nil {
		return err
	}
	for gone := false; ; {
		err := t.record(ctx, id, j, gone)
		if errors.Is(err, errSettled) && j.settled != "" {
			return nil
		}
		if errors.Is(err, errSettled) { // this node was frozen, and refs may have moved since
			gone = true
			if j.Changes, err = unrecorded(ctx, t.s.DB, Held{AuxRepoID: t.a.ID}, id, j.Changes, j.found); err == nil && len(j.Changes) > 0 {
				continue
			}
		}
		if !errors.Is(err, errOvertaken) {
			return err
		}
	}
}

// errSettled means that the row of a push is gone, because another node has settled it.
var errSettled = errors.New("another node has settled the push")

// errOvertaken rolls back the record of a push, because another push was
// recorded since the repository was examined.
var errOvertaken = errors.New("another push was recorded meanwhile")

// record calls Follow and records its result with the push. If another push was
// recorded in between, the result may be outdated: then it returns
// errOvertaken, and the caller tries again. It returns errSettled if the row of the push is
// gone, unless the caller knows that.
func (t auxRepoTarget) record(ctx context.Context, id int64, j journal, gone bool) error {
	pushes, err := auxRepoPushes(ctx, t.s.DB, t.a.ID)
	if errors.Is(err, db.ErrNoRows) {
		return nil // it was deleted, with its pushes
	}
	if err != nil {
		return fmt.Errorf("pushes to auxiliary repository %d: %w", t.a.ID, err)
	}
	branch, err := t.repo.DefaultBranch(ctx)
	if err != nil {
		return err
	}
	after, err := headNow(ctx, t.repo, branch)
	if err != nil {
		return err
	}
	at := t.s.Now()
	record, err := t.follow(ctx, after, j, at)
	if err != nil {
		return err
	}
	err = t.s.DB.Tx(ctx, func(tx *db.Tx) error {
		err := deleteAuxRepoPush(ctx, tx, id)
		if errors.Is(err, db.ErrNoRows) && !gone {
			return errSettled
		}
		if err != nil && !gone || len(j.Changes) == 0 {
			return err
		}
		if err := recordFor(ctx, tx, 0, t.a.ID, id, j.Changes, at); err != nil {
			return err
		}
		return t.insert(ctx, tx, pushes, at, record)
	})
	if err != nil {
		return fmt.Errorf("record push %d to auxiliary repository %d: %w", id, t.a.ID, err)
	}
	return nil
}

// follow calls Follow of the owner of the repository.
func (t auxRepoTarget) follow(ctx context.Context, after head, j journal, at time.Time) (func(context.Context, *db.Tx) error, error) {
	push := AuxRepoPush{AuxRepo: t.a, Repo: t.repo, By: t.by, Changes: j.Changes, Branch: after.branch, Tip: after.tip, At: at}
	record, err := t.s.auxRepoOwners[t.a.Kind].Follow(ctx, push)
	if err != nil {
		return nil, fmt.Errorf("follow push to auxiliary repository %d: %w", t.a.ID, err)
	}
	return record, nil
}

// insert records a push with the result of follow. It returns errOvertaken if another push was
// recorded since there were the given number of pushes.
func (t auxRepoTarget) insert(ctx context.Context, tx *db.Tx, pushes int64, at time.Time, record func(context.Context, *db.Tx) error) error {
	err := countAuxRepoPush(ctx, tx, t.a.ID, pushes, at)
	if errors.Is(err, db.ErrNoRows) {
		return errOvertaken
	}
	if err != nil {
		return err
	}
	if err := record(ctx, tx); err != nil {
		return err
	}
	return t.s.addAuxRepoTidying(ctx, tx, t.a.ID, false)
}

func (t auxRepoTarget) land(ctx context.Context, id int64, j journal) error {
	came, err := landed(ctx, t.repo, j)
	if err != nil {
		return err
	}
	if len(came.Changes) > 0 {
		return t.finish(ctx, id, came)
	}
	return t.s.dropAuxRepo(ctx, id)
}

// dropAuxRepo is drop for a push to an auxiliary repository.
func (s *Service) dropAuxRepo(ctx context.Context, id int64) error {
	if err := deleteAuxRepoPush(ctx, s.DB, id); err != nil && !errors.Is(err, db.ErrNoRows) {
		return fmt.Errorf("drop push %d: %w", id, err)
	}
	return nil
}

// settleAuxRepos is settle for auxiliary repositories.
func (s *Service) settleAuxRepos(ctx context.Context, before time.Time, prepare func(git.Repo, context.Context) error) error {
	left, err := findAuxRepoLeftovers(ctx, s.DB, before)
	if err != nil {
		return fmt.Errorf("find pushes to auxiliary repositories that were cut off: %w", err)
	}
	var faults []error
	for _, l := range left {
		if err := s.settleAuxRepo(ctx, l, prepare); err != nil {
			faults = append(faults, fmt.Errorf("settle push %d to auxiliary repository %d: %w", l.id, l.projectID, err))
		}
	}
	return errors.Join(faults...)
}

func (s *Service) settleAuxRepo(ctx context.Context, l leftover, prepare func(git.Repo, context.Context) error) error {
	t := auxRepoTarget{s: s}
	var was journal
	if err := errors.Join(json.Unmarshal([]byte(l.who), &t.by), json.Unmarshal([]byte(l.what), &was)); err != nil {
		return err
	}
	var err error
	if t.a, err = findAuxRepo(ctx, s.DB, "id", l.projectID); err != nil {
		return err
	}
	if t.repo, err = s.OpenAuxRepo(t.a); err != nil {
		return err
	}
	if err := prepare(t.repo, ctx); err != nil && !errors.Is(err, git.ErrNoRepository) {
		return err
	}
	was.settled = l.what
	return t.land(ctx, l.id, was)
}

// CutPath removes a suffix from the path of a part of a project or group:
// ".wiki" from "group/project.wiki". The rest must not be empty, end with a
// slash or be a number.
func CutPath(path, end string) (place project.Ref, ok bool) {
	before, ok := strings.CutSuffix(path, end)
	if !ok || before == "" || strings.HasSuffix(before, "/") || strings.Trim(before, "0123456789") == "" {
		return "", false
	}
	return project.Ref(before), true
}

// MovedWith adds a suffix to both paths of a project.Moved error, for a path
// from which CutPath removed it.
func MovedWith(err error, end string) error {
	if moved, ok := errors.AsType[*project.Moved](err); ok {
		there := *moved
		there.From, there.Path = moved.From+project.Ref(end), moved.Path+end
		return &there
	}
	return err
}
