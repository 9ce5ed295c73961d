package merge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/notify"
	"svc/internal/patch"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/repo"
)

// claimAge is how long a claim to merge or rebase a merge request is valid.
const claimAge = 10 * time.Minute

// Acceptance has the options of a merge; nil keeps the value of the merge
// request.
type Acceptance struct {
	SHA           string // expected head; empty: any
	MergeMessage  string // replaces the template of the project
	SquashMessage string
	Squash        *bool
	RemoveSource  *bool
	Auto          bool // merge when the pipeline succeeds and all checks pass

	// orNow: with Auto, merge now if there is nothing to wait for, also without a
	// successful pipeline.
	orNow bool
	// waited: the merge request waited for an automatic merge, which can be canceled.
	waited bool
}

// Merge merges a merge request. With Auto it is merged when its pipeline has
// succeeded and all checks pass; it is refused if it could be merged now, but its
// pipeline failed or does not exist. The actor needs permission to merge into the
// target branch.
// NotFound; Unauthorized; Forbidden while the repository is being moved;
// NotAllowed if the merge request is not ready; Unprocessable if git cannot
// merge it; Conflict if the head is not SHA.
func (s *Service) Merge(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, a Acceptance) (*MergeRequest, error) {
	in, m, err := s.current(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	if err := in.Writable(); err != nil {
		return nil, err
	}
	if err := s.complete(ctx, by, in, m); err != nil {
		return nil, err
	}
	if !m.CanMerge {
		return nil, errs.Unauthorized("")
	}
	later := a.Auto && (m.Pipeline != nil && m.Pipeline.Active || m.Status.Waits())
	if err := m.ready(later); err != nil {
		return nil, err
	}
	// Who asks to merge when the pipeline succeeds may ask before it is created.
	if a.Auto && !later && !a.orNow && (m.Pipeline == nil || !m.Pipeline.Success) {
		return nil, notReady()
	}
	if a.SHA != "" && a.SHA != m.Head {
		return nil, errs.Conflict("SHA does not match HEAD of source branch: %s", m.Head)
	}
	if later {
		if err := s.enableAuto(ctx, by, m, a); err != nil {
			return nil, fmt.Errorf("merge request %d: %w", m.ID, err)
		}
		return s.Get(ctx, by, project.RefTo(in.ID), iid)
	}
	if err := s.accept(ctx, by, in, m, a); err != nil {
		return nil, fmt.Errorf("merge request %d: %w", m.ID, err)
	}
	return s.Get(ctx, by, project.RefTo(in.ID), iid)
}

// ready returns NotAllowed if a merge request cannot be merged now, or Unprocessable
// if git cannot merge it. With later, failing checks that auto-merge waits for are
// accepted.
func (m *MergeRequest) ready(later bool) error {
	for _, failed := range m.Status.failing() {
		switch {
		case later && failed.waits():
			continue
		case failed == Conflicts, failed == NeedsRebase, failed == NoCommits:
			return errs.Unprocessable("Branch cannot be merged")
		}
		return notReady()
	}
	return nil
}

// notReady returns the error for a merge request that cannot be merged in its state.
func notReady() error {
	return &errs.Error{Kind: errs.KindNotAllowed, Text: "405 Method Not Allowed", Bare: true}
}

// changed is the code of Conflict errors after which a merge is not retried: the
// source head or the target branch of the merge request has changed.
const changed = "changed"

// tries is the maximum number of attempts to merge while the target branch is
// updated by others.
const tries = 20

// Merging prepares the target project for the commits of a merge request, before
// they are merged.
type Merging func(ctx context.Context, m *MergeRequest) error

// OnMerging registers the function that is called before a merge. It is called at
// startup.
func (s *Service) OnMerging(f Merging) { s.merging = f }

// accept merges a merge request that is ready. Only one request at a time can
// do this (see claim). The merge request is marked as merged by Pushed, so that
// this also happens if the process is killed in between.
func (s *Service) accept(ctx context.Context, by actor.Actor, in *project.Project, m *MergeRequest, a Acceptance) error {
	if s.merging != nil {
		if err := s.merging(ctx, m); err != nil {
			return err
		}
	}
	if err := claim(ctx, s.DB, "merging_at", m.ID, s.Now()); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	var err error
	for range tries {
		err = s.land(ctx, by, in, m, a)
		if e, ok := asRefusal(err); !ok || e.Kind != errs.KindConflict || e.Code == changed {
			break
		}
	}
	if err == nil {
		return nil
	}
	if fault := release(ctx, s.DB, "merging_at", m.ID, refusal(err)); fault != nil {
		return fault
	}
	return err
}

// land merges the head of a merge request into the current head of its target
// branch.
func (s *Service) land(ctx context.Context, by actor.Actor, in *project.Project, m *MergeRequest, a Acceptance) error {
	now, err := findRequestByID(ctx, s.DB, m.ID)
	if err != nil {
		return db.NotFound(err, "Merge Request")
	}
	if now.State != Opened { // changed concurrently
		return notReady()
	}
	// CancelAuto fails once the merge is claimed, so auto-merge cannot be canceled after
	// this check.
	if a.waited && now.autoMerge == "" {
		return notReady()
	}
	if now.TargetBranch != m.TargetBranch {
		return errs.Conflict("The target branch has been changed").Coded(changed)
	}
	if now.Head != m.Head {
		return errs.Conflict("SHA does not match HEAD of source branch: %s", now.Head).Coded(changed)
	}
	target, err := s.tip(ctx, in, m.TargetBranch)
	if err != nil {
		return err
	}
	if target == "" {
		return errs.Unprocessable("Branch cannot be merged")
	}
	// There may be a new thread, the pipeline may have been retried, or an
	// approval revoked.
	now.Version = m.Version
	if _, err := s.syncOwners(ctx, in, now, target); err != nil {
		return err
	}
	if err := s.fill(ctx, now); err != nil {
		return err
	}
	m = now
	// The target branch may have moved since the last check.
	if err := s.look(ctx, in, m, target); err != nil {
		return err
	}
	m.Status = m.statusOf(in, m.check.result, false)
	if err := m.ready(false); err != nil {
		return err
	}
	words, err := s.words(ctx, by, in, m)
	if err != nil {
		return err
	}
	l := repo.Landing{
		Branch: m.TargetBranch, Old: target, Head: git.OID(m.Head), Squash: m.squashes(in, a), Forward: in.Settings.MergeMethod == "ff",
		MergeMessage: words.merge(in, a), SquashMessage: words.squash(in, a), Author: git.Signature{Name: by.Name, Email: by.CommitEmail, When: s.Now()},
	}
	if m.Author != nil {
		l.Author.Name = m.Author.Name
		if l.Author.Email, err = s.Users.CommitAddress(ctx, m.AuthorID); err != nil {
			return err
		}
	}
	remove := m.RemoveSource
	patch.Set(&remove, a.RemoveSource)
	l.About = func(made repo.Landed) string {
		text, _ := json.Marshal(landing{RequestID: m.ID, Branch: l.Branch, Head: m.Head, Merge: string(made.Merge), Squash: string(made.Squash), Remove: remove}) // cannot fail
		return string(text)
	}
	_, err = s.Repos.Land(ctx, by, in, l)
	return err
}

// squashes reports whether the commits are squashed.
func (m *MergeRequest) squashes(in *project.Project, a Acceptance) bool {
	switch in.Settings.SquashOption {
	case "always":
		return true
	case "never":
		return false
	}
	squash := m.Squash
	patch.Set(&squash, a.Squash)
	return squash
}

// enableAuto sets a merge request to be merged when its pipeline has succeeded and
// it is approved. when are the options of the background job that checks whether it
// can be merged.
func (s *Service) enableAuto(ctx context.Context, by actor.Actor, m *MergeRequest, a Acceptance, when ...queue.AddOption) error {
	a.SHA = m.Head
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		now, err := lockRequest(ctx, tx, m.ID)
		if err != nil {
			return err
		}
		if now.State != Opened || now.Head != m.Head {
			return errs.Conflict("SHA does not match HEAD of source branch: %s", now.Head)
		}
		now.AutoMergeByID, now.autoMerge, now.UpdatedAt = &by.ID, string(text), s.Now()
		if err := saveRequest(ctx, tx, now); err != nil {
			return err
		}
		text := "enabled an automatic merge when the pipeline for " + m.Head[:8] + " succeeds"
		if m.Status.Waits() && m.Status.Detailed != StillRunning {
			text = "enabled an automatic merge when all merge checks for " + m.Head[:8] + " pass"
		}
		if err := s.Plan.AddSystemNote(ctx, tx, by, m.Target(), m.IID, m.ProjectID, text); err != nil {
			return err
		}
		if err := s.Plan.NotifyOf(ctx, tx, by.ID, &m.Issuable, notify.MergeWhenSucceeds, notify.Details{}); err != nil {
			return err
		}
		// The pipeline may already have ended: add a job that checks this.
		return s.Queue.Add(ctx, tx, autoWork{m.ID}, append(when, queue.In(lane))...)
	})
}

// cancelable returns an error if a merge request has no auto-merge that can be
// canceled.
func (m *MergeRequest) cancelable() error {
	switch {
	case m.State != Opened:
		return notReady()
	case m.autoMerge == "":
		return errs.NotAcceptable("Can't cancel the automatic merge")
	}
	return nil
}

// CancelAuto cancels the automatic merge of a merge request, for users who may
// merge it and for its author. NotFound; Unauthorized; NotAllowed if it is not
// open, not set to merge automatically, or being merged.
func (s *Service) CancelAuto(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (*MergeRequest, error) {
	in, m, err := s.request(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	if err := changeable(by, in); err != nil {
		return nil, err
	}
	may, err := s.Repos.MayMerge(ctx, by, in, m.TargetBranch)
	if err != nil {
		return nil, err
	}
	if !m.cancels(by, may) {
		return nil, errs.Unauthorized("")
	}
	if err := m.cancelable(); err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		now, err := lockRequest(ctx, tx, m.ID)
		if err != nil {
			return err
		}
		merging, err := claimed(ctx, tx, "merging_at", m.ID, s.Now())
		if err != nil {
			return err
		}
		if merging { // concurrently
			return notReady()
		}
		if err := now.cancelable(); err != nil { // changed concurrently
			return err
		}
		now.AutoMergeByID, now.autoMerge, now.UpdatedAt = nil, "", s.Now()
		if err := saveRequest(ctx, tx, now); err != nil {
			return err
		}
		return s.Plan.AddSystemNote(ctx, tx, by, m.Target(), m.IID, m.ProjectID, "canceled the automatic merge")
	})
	if err != nil {
		return nil, fmt.Errorf("cancel auto merge of request %d: %w", m.ID, err)
	}
	return s.Get(ctx, by, project.RefTo(in.ID), iid)
}

// PipelineEnded adds background jobs that merge the merge requests waiting for the
// pipelines of a commit. It is called in the transaction in which a pipeline ends.
func (s *Service) PipelineEnded(ctx context.Context, tx *db.Tx, sha string) error {
	ids, err := findWaiting(ctx, tx, sha)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := s.Queue.Add(ctx, tx, autoWork{id}, queue.In(lane)); err != nil {
			return err
		}
	}
	return nil
}

// OfPipeline returns the open merge requests whose head is the commit of a pipeline
// of a project. ref is the branch, or the ref of a merge request. It does not check
// permissions.
func (s *Service) OfPipeline(ctx context.Context, q db.Q, projectID int64, ref, sha string) ([]*MergeRequest, error) {
	var iid int64
	if rest, ok := strings.CutPrefix(ref, "refs/merge-requests/"); ok {
		text, _, _ := strings.Cut(rest, "/")
		if iid, ok = number(text); !ok {
			return nil, nil
		}
	}
	list, err := findByHead(ctx, q, projectID, ref, iid, sha)
	if err != nil {
		return nil, fmt.Errorf("merge requests of pipeline: %w", err)
	}
	return list, nil
}

// autoWork is the background job that merges a merge request after its
// pipeline.
type autoWork struct {
	ID int64 `json:"id"`
}

// Kind implements queue.Work.
func (autoWork) Kind() string { return "merge_auto" }

func (s *Service) workAutoMerge(ctx context.Context, w autoWork) error {
	m, err := findRequestByID(ctx, s.DB, w.ID)
	if err != nil {
		return ignoreRefusal(db.NotFound(err, "Merge Request"))
	}
	if m.State != Opened || m.autoMerge == "" || m.AutoMergeByID == nil {
		return nil
	}
	if err := s.headPipelines(ctx, m); err != nil {
		return err
	}
	if p := m.Pipeline; p != nil && (p.Active || !p.Success) {
		return nil
	}
	by, err := s.Users.As(ctx, *m.AutoMergeByID)
	if err != nil {
		return ignoreRefusal(err)
	}
	var a Acceptance
	if err := json.Unmarshal([]byte(m.autoMerge), &a); err != nil {
		return err
	}
	a.Auto, a.waited = false, true
	_, err = s.Merge(ctx, by, project.RefTo(m.ProjectID), m.IID, a)
	return ignoreRefusal(err) // the detailed merge status shows what blocks the merge
}

// refusal returns the text of an expected error, for users; empty for other errors.
func refusal(err error) string {
	if e, ok := asRefusal(err); ok {
		return e.Text
	}
	return ""
}
