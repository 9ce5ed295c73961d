package merge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/repo"
)

func asRefusal(err error) (*errs.Error, bool) { return errors.AsType[*errs.Error](err) }

// Rebase adds the background job that rebases the source branch of a merge request
// onto its target branch. The actor needs permission to push to the source branch.
// With skipCI, the jobs of the new pipeline are skipped. NotFound; Forbidden;
// NotAllowed if it is not open; Conflict while another rebase runs.
func (s *Service) Rebase(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, skipCI bool) error {
	in, m, err := s.opened(ctx, by, ref, iid)
	if err != nil {
		return err
	}
	if err := changeable(by, in); err != nil {
		return err
	}
	if m.State != Opened {
		return notReady()
	}
	if err := s.requireRebase(ctx, by, m); err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := claim(ctx, tx, "rebasing_at", m.ID, s.Now()); err != nil {
			return err
		}
		return s.Queue.Add(ctx, tx, rebaseWork{m.ID, by, skipCI}, queue.In(lane), queue.Tries(1))
	})
	if err != nil {
		return fmt.Errorf("rebase merge request %d: %w", m.ID, err)
	}
	return nil
}

// requireRebase returns Forbidden if the actor may not force push to the source
// branch of a merge request.
func (s *Service) requireRebase(ctx context.Context, by actor.Actor, m *MergeRequest) error {
	source, err := s.requirePush(ctx, by, m)
	if err != nil {
		return err
	}
	guarded, err := s.Repos.Guarded(ctx, source, m.SourceBranch)
	if err == nil && guarded {
		err = errs.Forbidden("Source branch is protected from force push")
	}
	return err
}

// CanPush reports whether an actor may push to the source branch of a merge request
// that they can see.
func (s *Service) CanPush(ctx context.Context, by actor.Actor, m *MergeRequest) (bool, error) {
	_, err := s.requirePush(ctx, by, m)
	if errs.IsRefusal(err) {
		return false, nil
	}
	return err == nil, err
}

// requirePush returns the source project of a merge request, if the actor may push
// to the source branch. Forbidden.
func (s *Service) requirePush(ctx context.Context, by actor.Actor, m *MergeRequest) (*project.Project, error) {
	head, err := s.sourceHead(ctx, m)
	if err != nil {
		return nil, err
	}
	if head == "" {
		return nil, errs.Forbidden("Source branch does not exist")
	}
	source, err := s.Projects.ReadCode(ctx, by, project.RefTo(*m.SourceProjectID))
	if errs.IsRefusal(err) {
		return nil, errs.Forbidden("Cannot push to source branch").Because(err)
	}
	if err != nil {
		return nil, err
	}
	may, err := s.Repos.MayPush(ctx, by, source, m.SourceBranch)
	if err == nil && !may {
		err = errs.Forbidden("Cannot push to source branch")
	}
	return source, err
}

// rebaseWork is the background job that rebases a merge request on behalf of a user.
type rebaseWork struct {
	ID int64       `json:"id"`
	By actor.Actor `json:"by"`

	SkipCI bool `json:"skip_ci,omitempty"`
}

// Kind implements queue.Work.
func (rebaseWork) Kind() string { return "merge_rebase" }

func (s *Service) workRebase(ctx context.Context, w rebaseWork) error {
	m, err := findRequestByID(ctx, s.DB, w.ID)
	if err != nil {
		return ignoreRefusal(db.NotFound(err, "Merge Request"))
	}
	err = s.rebase(ctx, w, m)
	why := ""
	switch {
	case errs.Is(err, errs.KindUnprocessable):
		why = "Rebase failed: Rebase locally, resolve all conflicts, then push the branch."
	case errs.IsRefusal(err):
		why = "Rebase failed: " + refusal(err)
	case err != nil:
		why = "Rebase failed. Please try again."
	}
	if fault := release(context.WithoutCancel(ctx), s.DB, "rebasing_at", m.ID, why); fault != nil {
		return fault
	}
	if errs.IsRefusal(err) {
		return nil
	}
	return err
}

func (s *Service) rebase(ctx context.Context, w rebaseWork, m *MergeRequest) error {
	in, err := s.system(ctx, &m.ProjectID)
	if err != nil {
		return err
	}
	if in == nil || m.SourceProjectID == nil || m.State != Opened {
		return errs.NotFound("Merge Request")
	}
	target, err := s.Repos.Tip(ctx, in, m.TargetBranch)
	if err != nil {
		return err
	}
	has, err := s.Repos.Has(ctx, in, git.OID(m.Head), target)
	if err != nil || has {
		return err
	}
	var options []string
	if w.SkipCI {
		options = []string{"ci.skip"}
	}
	about := func(same bool) (string, error) {
		if !same { // like any other push: approvals were given for other changes
			return "", nil
		}
		text, err := json.Marshal(landing{Rebased: m.ID})
		return string(text), err
	}
	return s.Repos.Rebase(ctx, w.By, in, target, project.RefTo(*m.SourceProjectID), m.SourceBranch, git.OID(m.Head), options, about)
}

// MergeRef creates the merge commit of a merge request at
// refs/merge-requests/:iid/merge without merging it, and returns the commit ID. It
// is for users who can see the merge request. NotFound; Refused if the merge request
// cannot be merged.
func (s *Service) MergeRef(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (string, error) {
	in, m, err := s.opened(ctx, by, ref, iid)
	if err != nil {
		return "", err
	}
	wrong := errs.Refused("Merge request is not mergeable")
	if m.State != Opened {
		return "", wrong
	}
	target, err := s.tip(ctx, in, m.TargetBranch)
	if err != nil {
		return "", err
	}
	if target == "" {
		return "", wrong
	}
	// The same commits give the same merge commit, regardless of the caller.
	at := m.Version.CreatedAt
	// The commit contains no email address of a user.
	who := git.Signature{Name: "Merge", Email: "merge@localhost", When: at}
	id, err := s.Repos.TryMerge(ctx, in, repo.MergeRef(m.IID, "merge"), target, git.OID(m.Head), who, fmt.Sprintf("Merge %s into %s", m.Head, target))
	if errs.Is(err, errs.KindUnprocessable) {
		return "", wrong.Because(err)
	}
	return string(id), err
}
