package merge

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"svc/internal/activity"
	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/patch"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/queue"
)

// Fields are changes to a merge request; nil keeps the default or the current value.
type Fields struct {
	plan.Fields
	TargetBranch       *string
	Squash             *bool
	RemoveSource       *bool
	AllowCollaboration *bool
	Reviewers          *[]int64 // a planning field
}

// DropPlan removes the planning fields.
func (f *Fields) DropPlan() {
	f.Fields.DropPlan()
	f.Reviewers = nil
}

// NewRequest has the fields of a new merge request. TargetBranch is required.
type NewRequest struct {
	Fields
	SourceBranch  string
	TargetProject *int64 // default: the source project
	Approvals     *int64 // number of required approvals; nil: as in the project settings
}

// Create creates a merge request from a branch of a project. The actor needs the
// Developer role in the source project and access to the merge requests of the
// target project, which is the same project or in the same fork network. Planning
// fields are ignored unless the actor is a member of the target project. NotFound;
// Forbidden; Invalid; Unprocessable; Conflict if there is an open merge request for
// the same branches.
func (s *Service) Create(ctx context.Context, by actor.Actor, ref project.Ref, n NewRequest) (*MergeRequest, error) {
	source, target, err := s.ends(ctx, by, ref, n)
	if err != nil {
		return nil, err
	}
	m := &MergeRequest{
		Issuable: plan.NewIssuable(plan.MergeKind, by, target, s.Now()), SourceProjectID: &source.ID, SourceBranch: n.SourceBranch,
		Squash: target.Settings.SquashOption == "always" || target.Settings.SquashOption == "default_on",
	}
	if !Chooses(by, target) {
		n.DropPlan()
	}
	out, err := s.commands(ctx, by, target, m, &n.Fields)
	if err != nil {
		return nil, err
	}
	if err := m.apply(n.Fields); err != nil {
		return nil, err
	}
	if err := s.checkBranches(ctx, source, target, m); err != nil {
		return nil, err
	}
	if err := s.checkUsers(ctx, target, &n.Fields); err != nil {
		return nil, err
	}
	named, err := s.namedIssues(ctx, target, m, nil)
	if err != nil {
		return nil, err
	}
	if n.Approvals != nil && m.checkRules(by, target) != nil {
		return nil, errs.InvalidField("approvals_before_merge", "cannot be set by you in this project")
	}
	if n.Approvals != nil && (*n.Approvals < 0 || *n.Approvals > project.MaxApprovals) {
		return nil, errs.InvalidField("approvals_before_merge", "must be between 0 and %d", project.MaxApprovals)
	}
	crossed, err := s.Plan.Mentioned(ctx, by, target, n.Texts())
	if err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := s.insert(ctx, tx, by, target, m, n.Fields); err != nil {
			return err
		}
		if n.Time.Set() {
			if err := s.change(ctx, tx, by, target, m.ID, Fields{Fields: plan.Fields{Time: n.Time}}, ""); err != nil {
				return err
			}
		}
		if err := out.InTx(ctx, tx, &m.Issuable); err != nil {
			return err
		}
		if err := s.Plan.CrossReference(ctx, tx, by, m.source(target), crossed); err != nil {
			return err
		}
		return saveIssues(ctx, tx, m.ID, named)
	})
	if err != nil {
		return nil, fmt.Errorf("create merge request: %w", err)
	}
	if n.Approvals != nil {
		if _, _, err := s.RequireApprovals(ctx, by, project.RefTo(target.ID), m.IID, *n.Approvals); err != nil {
			return nil, err
		}
	}
	return s.done(ctx, by, target, m, out)
}

// source returns a merge request of a project as a source of cross-references.
func (m *MergeRequest) source(in *project.Project) plan.Source {
	return plan.Source{Kind: plan.MergeKind, ID: m.ID, IID: m.IID, In: in}
}

// ends returns the source and target projects of a new merge request.
func (s *Service) ends(ctx context.Context, by actor.Actor, ref project.Ref, n NewRequest) (source, target *project.Project, err error) {
	if source, err = s.Projects.ReadCode(ctx, by, ref); err != nil {
		return nil, nil, err
	}
	if err := by.RequireUser(); err != nil {
		return nil, nil, err
	}
	target = source
	if n.TargetProject != nil && *n.TargetProject != source.ID {
		if target, err = s.Projects.RequireView(ctx, by, project.RefTo(*n.TargetProject), project.MergePart); err != nil {
			return nil, nil, err
		}
	}
	if !target.MayRead(by, project.MergePart) {
		return nil, nil, errs.NotFound("")
	}
	if err := CheckSource(by, source); err != nil {
		return nil, nil, err
	}
	if err := CheckTarget(by, target); err != nil {
		return nil, nil, err
	}
	if source.ID == target.ID {
		return source, target, nil
	}
	same, err := s.Projects.SameNetwork(ctx, source, target)
	if err == nil && !same {
		err = unprocessable("Source project is not a fork of the target project")
	}
	return source, target, err
}

// unprocessable returns an Unprocessable error whose message is a list, as API
// clients expect.
func unprocessable(text string) error {
	return &errs.Error{Kind: errs.KindUnprocessable, Text: text, Listed: true}
}

// checkBranches validates that both branches exist, and sets the head of the merge
// request.
func (s *Service) checkBranches(ctx context.Context, source, target *project.Project, m *MergeRequest) error {
	if source.ID == target.ID && m.SourceBranch == m.TargetBranch {
		return unprocessable("You can't use same project/branch for source and target")
	}
	wrong := errs.Fields{}
	head, err := s.tip(ctx, source, m.SourceBranch)
	if err != nil {
		return err
	}
	if head == "" {
		wrong.Set("source_branch", "does not exist")
	}
	start, err := s.tip(ctx, target, m.TargetBranch)
	if err != nil {
		return err
	}
	if start == "" {
		wrong.Set("target_branch", "does not exist")
	}
	m.Head = string(head)
	return wrong.Err()
}

// checkUsers removes users who cannot read the merge requests of the project.
func (s *Service) checkUsers(ctx context.Context, in *project.Project, f *Fields) error {
	for name, list := range map[string]*[]int64{"assignees": f.Assignees, "reviewers": f.Reviewers} {
		if list == nil {
			continue
		}
		able, err := s.Plan.Able(ctx, in, name, *list, project.MergePart)
		if err != nil {
			return err
		}
		*list = able
	}
	return nil
}

// apply sets and validates the fields of the merge request.
func (m *MergeRequest) apply(f Fields) error {
	wrong, err := m.Apply(f.Fields)
	if err != nil {
		return err
	}
	m.Draft = draftMark.MatchString(m.Title)
	patch.Set(&m.TargetBranch, f.TargetBranch)
	patch.Set(&m.Squash, f.Squash)
	patch.Set(&m.RemoveSource, f.RemoveSource)
	patch.Set(&m.AllowCollaboration, f.AllowCollaboration)
	if strings.TrimSpace(draftMark.ReplaceAllString(m.Title, "")) == "" {
		wrong.Set("title", "can't be blank")
	}
	for name, branch := range map[string]string{"source_branch": m.SourceBranch, "target_branch": m.TargetBranch} {
		if branch == "" {
			wrong.Set(name, "can't be blank")
		} else if git.CheckRef(git.Heads+branch) != nil {
			wrong.Set(name, "is invalid")
		}
	}
	return wrong.Err()
}

func (s *Service) insert(ctx context.Context, tx *db.Tx, by actor.Actor, in *project.Project, m *MergeRequest, f Fields) (err error) {
	if err := alone(ctx, tx, m); err != nil {
		return err
	}
	if err := plan.Usable(ctx, tx, in, f.Milestone); err != nil {
		return err
	}
	if m.IID, err = project.NextNumber(ctx, tx, in.ID, "merge_request"); err != nil {
		return err
	}
	if err := insertRequest(ctx, tx, m); err != nil {
		return err
	}
	if _, _, err := s.Plan.SaveLabels(ctx, tx, by, in, m.Target(), f.Labels); err != nil {
		return err
	}
	if err := s.Plan.RecordMilestone(ctx, tx, by, &m.Issuable, nil); err != nil {
		return err
	}
	if _, err := s.Plan.AppointAll(ctx, tx, &m.Issuable, f.Assignees, f.Reviewers); err != nil {
		return err
	}
	if err := dateReviewers(ctx, tx, m.ID, s.Now()); err != nil {
		return err
	}
	if err := s.Plan.Join(ctx, tx, m.Target(), by.ID); err != nil {
		return err
	}
	if err := s.addVersion(ctx, tx, m, nil, ""); err != nil {
		return err
	}
	if err := project.Touch(ctx, tx, in, s.Now()); err != nil {
		return err
	}
	if err := s.Events.Changed.Publish(ctx, tx, Change{Request: m, Kind: Created, By: by.ID}); err != nil {
		return err
	}
	return s.record(ctx, tx, by.ID, m, activity.Created)
}

// alone returns Conflict if there is another open merge request for the same
// branches.
func alone(ctx context.Context, tx *db.Tx, m *MergeRequest) error {
	// Without the lock, two concurrent requests would both find none.
	if err := tx.Lock(ctx, "projects", m.ProjectID); err != nil {
		return err
	}
	other, err := findDuplicate(ctx, tx, m)
	if errors.Is(err, db.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return &errs.Error{Kind: errs.KindConflict, Text: fmt.Sprintf("Another open merge request already exists for this source branch: !%d", other), Listed: true}
}

// addVersion inserts a new version of a merge request, and adds the background job
// that collects its data from git.
func (s *Service) addVersion(ctx context.Context, tx *db.Tx, m *MergeRequest, by *int64, was string) error {
	v := &Version{RequestID: m.ID, Head: m.Head, authorID: by, was: was, CreatedAt: s.Now()}
	if err := insertVersion(ctx, tx, v); err != nil {
		return err
	}
	return s.Queue.Add(ctx, tx, collectWork{m.ID}, queue.In(lane))
}

// record writes an activity event about a merge request, and notifies users.
func (s *Service) record(ctx context.Context, tx *db.Tx, userID int64, m *MergeRequest, done activity.Action) error {
	if err := s.notifyDone(ctx, tx, userID, m, done); err != nil {
		return err
	}
	return s.Plan.Record(ctx, tx, userID, &m.Issuable, activity.MergeReaders, done)
}
