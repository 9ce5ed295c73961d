// Package merge implements merge requests. It uses package repo to change
// repositories, and package plan for labels, milestones and notes.
package merge

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"svc/internal/activity"
	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/event"
	"svc/internal/git"
	"svc/internal/markup"
	"svc/internal/memo"
	"svc/internal/notify"
	"svc/internal/plan"
	"svc/internal/plan/diffnote"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/repo"
	"svc/internal/user"
)

// State is the state of a merge request.
type State = plan.State

// The states. A closed merge request can be reopened, a merged one cannot.
const (
	Opened = plan.Opened
	Closed = plan.Closed
	Merged = plan.Merged
)

// MergeRequest is a request to merge a source branch into a target branch. It
// belongs to the target project.
type MergeRequest struct {
	plan.Issuable
	SourceProjectID    *int64 // nil if it was deleted
	SourceBranch       string
	TargetBranch       string
	Draft              bool
	Head               string // last pushed commit of the source branch
	Squash             bool
	RemoveSource       bool
	AllowCollaboration bool
	MergeCommit        string
	SquashCommit       string
	MergeError         string // why the last merge or rebase failed
	MergedAt           *time.Time
	MergedByID         *int64
	AutoMergeByID      *int64 // user who set it to merge when its pipeline succeeds
	PreparedAt         *time.Time
	RebasingAt         *time.Time // when the current rebase started

	check         check
	autoMerge     string // an Acceptance as JSON
	lacksApproval bool   // set by fill
	complete      bool   // Change.Complete

	// The following fields are set by fill.
	ApprovalsBeforeMerge *int64 // required by its own rule for any approver while it is open; nil if it has none
	MergedBy             *user.User
	AutoMergeBy          *user.User
	OpenThreads          int64 // unresolved threads
	// ChangeRequests is the number of users whose request for changes blocks the merge.
	ChangeRequests int64
	// Blockers is the number of merge requests that it depends on and that are not
	// merged yet.
	Blockers int64
	// SquashOnMerge reports whether the commits will be squashed, according to the
	// settings of the merge request and the project.
	SquashOnMerge bool
	// Status is the mergeability. It is checked when a single merge request is
	// read; lists have the last known value.
	Status Status

	// The following fields are set for a single merge request.
	CanMerge  bool      // the actor may merge it
	CanRebase bool      // the actor may rebase it, and it must be rebased
	Version   *Version  // the newest collected version
	Pipeline  *Pipeline // in lists only if the project requires a pipeline
}

// check is the result of the last merge check of two commits.
type check struct {
	result         string // can, behind or cannot; empty: unknown
	source, target string
}

// ResolvedThreads reports whether all threads are resolved.
func (m *MergeRequest) ResolvedThreads() bool { return m.OpenThreads == 0 }

// FromFork reports whether the source is another project.
func (m *MergeRequest) FromFork() bool {
	return m.SourceProjectID == nil || *m.SourceProjectID != m.ProjectID
}

// KnownStatus returns the last known mergeability, for other features.
func (m *MergeRequest) KnownStatus(in *project.Project) Status { return m.known(in) }

// Rebasing reports whether the merge request is being rebased.
func (m *MergeRequest) Rebasing(now time.Time) bool {
	return m.RebasingAt != nil && now.Sub(*m.RebasingAt) < claimAge
}

// draftMark matches the title prefix of a draft.
var draftMark = regexp.MustCompile(`(?i)^\s*(\[draft\]|\(draft\)|draft:)\s*`)

// Titled returns the title with the draft prefix added or removed.
func (m *MergeRequest) Titled(draft bool) string {
	title := m.Title
	for draftMark.MatchString(title) {
		title = draftMark.ReplaceAllString(title, "")
	}
	if draft {
		return "Draft: " + title
	}
	return title
}

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Queue    *queue.Queue
	Users    *user.Service
	Projects *project.Service
	Repos    *repo.Service
	Plan     *plan.Service
	Notify   *notify.Service
	URL      string // of the instance, without a trailing slash
	Now      func() time.Time
}

// Service manages the merge requests of the instance.
type Service struct {
	Deps
	Events Events

	pipelines Pipelines
	merging   Merging
	owners    ownersCache
}

// Events are the events of merge requests.
type Events struct {
	// Changed is published when a merge request is created, its head, state or fields
	// change, it gets conflicts, or a user reviews it.
	Changed event.Event[Change]
}

// Change is an event of a merge request.
type Change struct {
	Request *MergeRequest
	Kind    ChangeKind
	By      int64         // the user who made the change
	Was     *MergeRequest // before a change of fields or of the state; nil for other changes
	OldHead string        // before HeadChanged
	// Complete is set if all rules are satisfied after an approval, or were satisfied
	// before an approval was revoked.
	Complete bool
}

// ChangeKind is the kind of a Change.
type ChangeKind string

// The kinds of changes.
const (
	Created       ChangeKind = "created"
	HeadChanged   ChangeKind = "head"      // a new head was pushed
	Collected     ChangeKind = "collected" // a new head is stored in the target project, with its commits
	StateChanged  ChangeKind = "state"
	FieldsChanged ChangeKind = "fields"
	Conflicted    ChangeKind = "conflicted" // it can no longer be merged without conflicts
	ReviewedBy    ChangeKind = "reviewed"   // a user has published a review
	ApprovalGiven ChangeKind = "approved"
	ApprovalGone  ChangeKind = "unapproved" // a user revoked their approval
	// ApprovalsReset means that the system removed approvals, after a push or a change
	// of the target branch.
	ApprovalsReset ChangeKind = "approvals_reset"
)

// New returns the service and registers its background jobs.
func New(d Deps) *Service {
	s := &Service{Deps: d}
	s.handleWork()
	s.handleCommands()
	return s
}

// UserDeleted makes the ghost user the author of the merge requests of a deleted
// user, and cancels the automatic merges that they enabled. A hard deletion deletes
// the merge requests and their notes.
func (s *Service) UserDeleted(ctx context.Context, tx *db.Tx, d user.Deletion) error {
	if err := dropAutoMerges(ctx, tx, d.UserID); err != nil {
		return err
	}
	if !d.Hard {
		return changeAuthor(ctx, tx, d.UserID, d.GhostID)
	}
	gone, err := deleteRequestsBy(ctx, tx, d.UserID)
	if err != nil {
		return err
	}
	ids := make([]int64, len(gone))
	for i, m := range gone {
		ids[i] = m.ID
		if err := s.Queue.Add(ctx, tx, dropWork{m.ProjectID, m.IID}); err != nil {
			return err
		}
	}
	return plan.Forget(ctx, tx, plan.MergeKind, ids...)
}

// ProjectsDeleted deletes the rows of deleted projects that have no foreign key to
// the project.
func ProjectsDeleted(ctx context.Context, tx *db.Tx, gone []project.Deleted) error {
	for _, p := range gone {
		if err := deleteProjectSubscriptions(ctx, tx, p.ID); err != nil {
			return err
		}
	}
	return nil
}

// Get returns a merge request by its IID, for users who can read the merge requests
// of the project. It updates the version and the mergeability. NotFound.
func (s *Service) Get(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (*MergeRequest, error) {
	in, m, err := s.current(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	return m, s.complete(ctx, by, in, m)
}

// request checks access and returns the project and the merge request. It does not
// collect new versions. NotFound.
func (s *Service) request(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (*project.Project, *MergeRequest, error) {
	r, err := memo.Get(ctx, readKey{by.ID, ref, iid, false}, func() (r read, err error) {
		if r.in, r.m, err = s.view(ctx, by, ref, iid); err == nil {
			err = s.fill(ctx, r.m)
		}
		return r, err
	})
	return r.copied(err)
}

// readKey is the cache key of a merge request that a page reads more than once.
type readKey struct {
	by      int64
	ref     project.Ref
	iid     int64
	current bool // with new versions
}

// read is a merge request with its project.
type read struct {
	in *project.Project
	m  *MergeRequest
}

// copied returns the project and a copy of the merge request, which the caller may
// modify.
func (r read) copied(err error) (*project.Project, *MergeRequest, error) {
	if err != nil {
		return nil, nil, err
	}
	in, m := *r.in, *r.m
	return &in, &m, nil
}

// current is like request, but collects new versions first, before the related rows
// are read: approvals and committers of an earlier version must not count for a
// later one.
func (s *Service) current(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (*project.Project, *MergeRequest, error) {
	r, err := memo.Get(ctx, readKey{by.ID, ref, iid, true}, func() (r read, err error) {
		if r.in, r.m, err = s.view(ctx, by, ref, iid); err != nil {
			return r, err
		}
		if err = s.refresh(ctx, r.m); err != nil {
			return r, err
		}
		if err = s.fill(ctx, r.m); err == nil {
			memo.Put(ctx, readKey{by.ID, ref, iid, false}, r)
		}
		return r, err
	})
	return r.copied(err)
}

// view checks access and returns the project and the row of the merge request.
// NotFound.
func (s *Service) view(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (*project.Project, *MergeRequest, error) {
	in, err := s.Projects.RequireView(ctx, by, ref, project.MergePart)
	if err != nil {
		return nil, nil, err
	}
	m, err := findRequest(ctx, s.DB, in.ID, iid)
	if err != nil {
		return nil, nil, db.NotFound(err, "Merge Request")
	}
	return in, m, nil
}

// Seen returns a merge request by its ID, and its project, if the actor can see it.
// Versions and mergeability are not updated. NotFound.
func (s *Service) Seen(ctx context.Context, by actor.Actor, id int64) (*project.Project, *MergeRequest, error) {
	found, err := findRequestByID(ctx, s.DB, id)
	if err != nil {
		return nil, nil, db.NotFound(err, "Merge Request")
	}
	return s.request(ctx, by, project.RefTo(found.ProjectID), found.IID)
}

// fill reads the related rows of merge requests.
func (s *Service) fill(ctx context.Context, list ...*MergeRequest) error {
	if len(list) == 0 {
		return nil
	}
	ids, others, shared := make([]int64, len(list)), []*int64{}, make([]*plan.Issuable, len(list))
	for i, m := range list {
		ids[i], shared[i], others = m.ID, &m.Issuable, append(others, m.MergedByID, m.AutoMergeByID)
	}
	users, err := s.Plan.FillIssuables(ctx, shared, others...)
	if err != nil {
		return err
	}
	threads, err := s.Plan.OpenThreads(ctx, plan.MergeKind, ids...)
	if err != nil {
		return err
	}
	asking, err := countChangeRequests(ctx, s.DB, ids)
	if err != nil {
		return fmt.Errorf("count change requests: %w", err)
	}
	blockers, err := countBlockers(ctx, s.DB, ids)
	if err != nil {
		return fmt.Errorf("count dependencies: %w", err)
	}
	projects, err := s.settings(ctx, list)
	if err != nil {
		return err
	}
	var asked []*MergeRequest // merge requests whose project requires a pipeline
	for _, m := range list {
		if in := projects[m.ProjectID]; m.State == Opened && in != nil && in.MergeSettings().OnlyAllowMergeIfPipelineSucceeds {
			asked = append(asked, m)
		}
	}
	if err := s.headPipelines(ctx, asked...); err != nil {
		return err
	}
	open := slices.DeleteFunc(slices.Clone(list), func(m *MergeRequest) bool { return m.State != Opened })
	if err := s.checkApprovals(ctx, open, projects); err != nil {
		return err
	}
	for _, m := range list {
		if m.MergedByID != nil {
			m.MergedBy = users[*m.MergedByID]
		}
		if m.AutoMergeByID != nil {
			m.AutoMergeBy = users[*m.AutoMergeByID]
		}
		m.OpenThreads, m.ChangeRequests, m.Blockers = threads[m.ID], asking[m.ID], blockers[m.ID]
		if in := projects[m.ProjectID]; in != nil {
			m.SquashOnMerge = m.squashes(in, Acceptance{})
		}
		m.Status = m.known(projects[m.ProjectID])
	}
	return nil
}

// settings returns the projects of merge requests by ID.
func (s *Service) settings(ctx context.Context, list []*MergeRequest) (map[int64]*project.Project, error) {
	var ids []int64
	for _, m := range list {
		ids = append(ids, m.ProjectID)
	}
	slices.Sort(ids)
	found, err := s.Projects.Among(ctx, actor.System(), slices.Compact(ids))
	if err != nil {
		return nil, err
	}
	projects := map[int64]*project.Project{}
	for _, p := range found {
		projects[p.ID] = p
	}
	return projects, nil
}

// complete sets the fields that only single merge requests have. m was returned by
// current.
func (s *Service) complete(ctx context.Context, by actor.Actor, in *project.Project, m *MergeRequest) error {
	var err error
	if m.Version, err = newestVersion(ctx, s.DB, m.ID); err != nil && !errors.Is(err, db.ErrNoRows) {
		return fmt.Errorf("version of merge request %d: %w", m.ID, err)
	}
	if err := s.headPipelines(ctx, m); err != nil {
		return err
	}
	if m.Status, err = s.status(ctx, in, m); err != nil {
		return err
	}
	if !by.Anonymous() {
		if m.CanMerge, err = s.Repos.MayMerge(ctx, by, in, m.TargetBranch); err != nil {
			return err
		}
		if m.State == Opened && m.check.result == canBehind {
			err := s.requireRebase(ctx, by, m)
			if m.CanRebase = err == nil; err != nil && !errs.IsRefusal(err) {
				return err
			}
		}
	}
	return s.Plan.FillSubscribed(ctx, by, &m.Issuable)
}

// refresh collects new versions of a merge request if there was a push that the
// background job has not processed yet, and reads its row again.
func (s *Service) refresh(ctx context.Context, m *MergeRequest) error {
	if m.PreparedAt != nil {
		pending, err := hasPending(ctx, s.DB, m.ID)
		if err != nil || !pending {
			return err
		}
	}
	err := s.collect(ctx, m.ID)
	if errors.Is(err, project.ErrMoving) {
		return nil // readers see the previous state; the background job retries
	}
	if err != nil {
		return err
	}
	now, err := findRequestByID(ctx, s.DB, m.ID)
	if err != nil {
		return db.NotFound(err, "Merge Request")
	}
	*m = *now
	return nil
}

// Subscribe subscribes the actor to a merge request, or unsubscribes them. changed
// is false if there was nothing to change. NotFound.
func (s *Service) Subscribe(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, want bool) (m *MergeRequest, changed bool, err error) {
	in, m, err := s.current(ctx, by, ref, iid)
	if err != nil {
		return nil, false, err
	}
	if changed, err = s.Plan.Subscribe(ctx, by, m.Target(), want); err != nil {
		return nil, false, err
	}
	return m, changed, s.complete(ctx, by, in, m)
}

// Participants returns the participants of a merge request to users who can see
// it: the author, the assignees, the reviewers and the authors of notes.
// NotFound.
func (s *Service) Participants(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) ([]*user.User, error) {
	in, m, err := s.request(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	return s.Plan.ParticipantsOf(ctx, &m.Issuable, in.MayRead(by, project.ConfidentialPart))
}

// OnMergeRequest returns a merge request as a target of notes, to users who can
// see it. NotFound.
func (s *Service) OnMergeRequest(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (plan.Noteable, error) {
	in, m, err := s.request(ctx, by, ref, iid)
	if err != nil {
		return plan.Noteable{}, err
	}
	return s.noteable(by, in, m), nil
}

// noteable returns a merge request as a target of notes.
func (s *Service) noteable(by actor.Actor, in *project.Project, m *MergeRequest) plan.Noteable {
	on := m.Noteable(by, in)
	on.Resolver = m.settles(by, in)
	on.Count = func(ctx context.Context, tx *db.Tx, step int) (activity.Audience, error) {
		return activity.MergeReaders, countNote(ctx, tx, m.ID, step, s.Now())
	}
	on.Resolved = func(ctx context.Context, tx *db.Tx) error {
		now, err := lockRequest(ctx, tx, m.ID)
		if err != nil {
			return err
		}
		return s.continueAuto(ctx, tx, now)
	}
	on.Commands = s.commandTarget(by, in, m)
	on.Diff = func(ctx context.Context, p *diffnote.Position) (*git.FileDiff, error) {
		return s.fileDiff(ctx, in, m, p)
	}
	on.Source = func(ctx context.Context, sha, path string) ([]byte, error) {
		return s.Repos.TextAt(ctx, in, git.OID(sha), path, maxSuggestionFile)
	}
	on.CheckSuggestions = func(ctx context.Context, notes []*plan.Note) error { return s.checkSuggestions(ctx, in, m, notes) }
	return on
}

// Refer resolves a reference such as !1 in a text.
func (s *Service) Refer(ctx context.Context, by actor.Actor, in *project.Project, name string) (*markup.Target, error) {
	if !in.MayRead(by, project.MergePart) {
		return nil, nil
	}
	iid, ok := number(name)
	if !ok {
		return nil, nil
	}
	m, err := findRequest(ctx, s.DB, in.ID, iid)
	if err != nil {
		return nil, db.NotFound(err, "Merge Request")
	}
	return &markup.Target{URL: "/" + in.FullPath + "/-/merge_requests/" + name, Title: m.Title}, nil
}

// RequestIn returns a merge request by its ID in a transaction of another feature.
// NotFound.
func RequestIn(ctx context.Context, q db.Q, id int64) (*MergeRequest, error) {
	m, err := findRequestByID(ctx, q, id)
	return m, db.NotFound(err, "Merge Request")
}

// system returns a project without checking permissions; nil if it was deleted.
func (s *Service) system(ctx context.Context, id *int64) (*project.Project, error) {
	if id == nil {
		return nil, nil
	}
	p, err := s.Projects.Require(ctx, actor.System(), project.RefTo(*id), project.NoAccess)
	if errs.Is(err, errs.KindNotFound) {
		return nil, nil
	}
	return p, err
}

// sourceHead returns the commit of the source branch; empty if it does not
// exist.
func (s *Service) sourceHead(ctx context.Context, m *MergeRequest) (git.OID, error) {
	source, err := s.system(ctx, m.SourceProjectID)
	if err != nil || source == nil {
		return "", err
	}
	return s.tip(ctx, source, m.SourceBranch)
}

// tip returns the commit of a branch; empty if it does not exist.
func (s *Service) tip(ctx context.Context, p *project.Project, branch string) (git.OID, error) {
	id, err := s.Repos.Tip(ctx, p, branch)
	if errs.Is(err, errs.KindNotFound) {
		return "", nil
	}
	return id, err
}

// Source returns the source project if the actor can read its code, or nil.
func (s *Service) Source(ctx context.Context, by actor.Actor, m *MergeRequest) (*project.Project, error) {
	if m.SourceProjectID == nil {
		return nil, nil
	}
	p, err := s.Projects.ReadCode(ctx, by, project.RefTo(*m.SourceProjectID))
	if errs.IsRefusal(err) {
		return nil, nil
	}
	return p, err
}

func number(text string) (n int64, ok bool) {
	if text == "" || len(text) > 18 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	_, err := fmt.Sscan(text, &n)
	return n, err == nil
}
