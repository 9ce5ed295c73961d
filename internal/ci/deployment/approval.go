package deployment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/user"
)

// Approval is an approval or rejection of a deployment to a protected environment.
type Approval struct {
	ID           int64
	DeploymentID int64
	UserID       int64
	RuleID       *int64 // the approval rule that it is limited to
	Approved     bool   // otherwise rejected
	Comment      string
	CreatedAt    time.Time

	User *user.User
}

// ApprovalRule is an approval rule with the approvals that count for it.
type ApprovalRule struct {
	*EnvironmentRule        // nil: users who may deploy
	Environment      string // name of the protected environment
	Required         int64
	Approvals        []*Approval
}

// Pending returns the number of missing approvals.
func (r *ApprovalRule) Pending() int64 { return max(r.Required-int64(len(r.Approvals)), 0) }

// Review is the state of the approvals of a deployment.
type Review struct {
	Rules     []*ApprovalRule
	Approvals []*Approval // all, with rejections
}

// Pending returns the number of missing approvals.
func (r *Review) Pending() int64 {
	var n int64
	for _, rule := range r.Rules {
		n += rule.Pending()
	}
	return n
}

// Required reports whether deployments need an approval.
func (r *Review) Required() bool { return len(r.Rules) > 0 }

// review returns the approvals of a deployment by the rules that protect its
// environment.
func (s *Service) review(ctx context.Context, p *project.Project, deploymentID int64, list []*ProtectedEnvironment) (*Review, error) {
	r := &Review{}
	for _, e := range list {
		switch {
		case len(e.Approve) > 0:
			for _, rule := range e.Approve {
				r.Rules = append(r.Rules, &ApprovalRule{EnvironmentRule: rule, Environment: e.Name, Required: rule.Required})
			}
		case e.RequiredApprovals > 0:
			r.Rules = append(r.Rules, &ApprovalRule{Environment: e.Name, Required: e.RequiredApprovals})
		}
	}
	var err error
	if r.Approvals, err = findApprovals(ctx, s.DB, deploymentID); err != nil {
		return nil, err
	}
	for _, a := range r.Approvals {
		if !a.Approved {
			continue
		}
		by, err := s.Users.As(ctx, a.UserID)
		if errs.IsRefusal(err) {
			continue // blocked or deleted: the approval no longer counts
		}
		if err != nil {
			return nil, err
		}
		for _, rule := range r.Rules {
			if a.RuleID != nil && (rule.EnvironmentRule == nil || rule.ID != *a.RuleID) {
				continue
			}
			ok, err := s.counts(ctx, by, p, rule, list)
			if err != nil {
				return nil, err
			}
			if ok {
				rule.Approvals = append(rule.Approvals, a)
			}
		}
	}
	return r, nil
}

// counts reports whether an approval of a user counts for a rule.
func (s *Service) counts(ctx context.Context, by actor.Actor, p *project.Project, rule *ApprovalRule, list []*ProtectedEnvironment) (bool, error) {
	if rule.EnvironmentRule != nil {
		return s.matches(ctx, by, p, rule.EnvironmentRule)
	}
	return s.MayDeploy(ctx, by, p, list)
}

// Gate reports whether a deployment may run.
type Gate struct {
	Allowed bool // the user may deploy
	Waiting bool // for approvals
}

// GateOf returns whether the deployment of a job to an environment may run, started by
// a user. If the environment was deleted, its tier is not known, and the protections of
// the groups for all tiers apply.
func (s *Service) GateOf(ctx context.Context, p *project.Project, jobID int64, environment string, by actor.Actor) (Gate, error) {
	d, e, err := findOfJob(ctx, s.DB, jobID)
	if errors.Is(err, db.ErrNoRows) {
		e, err = &Environment{Name: environment}, nil
	}
	if err != nil {
		return Gate{}, fmt.Errorf("deployment of job %d: %w", jobID, err)
	}
	if e == nil {
		return Gate{Allowed: true}, nil
	}
	list, err := s.Protections(ctx, p, e.Name, e.Tier)
	if err != nil || len(list) == 0 {
		return Gate{Allowed: true}, err
	}
	var g Gate
	if g.Allowed, err = s.MayDeploy(ctx, by, p, list); err != nil || d == nil {
		return g, err
	}
	r, err := s.review(ctx, p, d.ID, list)
	if err != nil {
		return g, err
	}
	g.Waiting = r.Pending() > 0
	return g, nil
}

// ReviewOf returns the approvals of a deployment that the actor can see.
func (s *Service) ReviewOf(ctx context.Context, p *project.Project, d *Deployment) (*Review, error) {
	if d.Environment == nil {
		return &Review{}, nil
	}
	list, err := s.Protections(ctx, p, d.Environment.Name, d.Environment.Tier)
	if err != nil {
		return nil, err
	}
	r, err := s.review(ctx, p, d.ID, list)
	if err != nil {
		return nil, fmt.Errorf("approvals of deployment %d: %w", d.ID, err)
	}
	var ids []int64
	for _, a := range r.Approvals {
		ids = append(ids, a.UserID)
	}
	users, err := s.Users.FindAll(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, a := range r.Approvals {
		a.User = users[a.UserID]
	}
	return r, nil
}

// GetWithReview is Get, with the approvals of the deployment.
func (s *Service) GetWithReview(ctx context.Context, by actor.Actor, in project.Ref, id int64) (*Deployment, *Review, error) {
	d, err := s.Get(ctx, by, in, id)
	if err != nil {
		return nil, nil, err
	}
	p, err := s.visible(ctx, by, in)
	if err != nil {
		return nil, nil, err
	}
	r, err := s.ReviewOf(ctx, p, d)
	return d, r, err
}

// Decision is the approval or rejection of a blocked deployment by a user.
type Decision struct {
	Approve       bool // otherwise reject
	Comment       string
	RepresentedAs string // name of the user, group or role of a rule
}

const maxComment = 255

// Decide approves or rejects a blocked deployment, for users who match one of its
// approval rules. It returns the approval and the number of missing approvals.
// NotFound, Invalid.
func (s *Service) Decide(ctx context.Context, by actor.Actor, in project.Ref, id int64, c Decision) (*Deployment, *Approval, int64, error) {
	p, err := s.Projects.RequireView(ctx, by, in, project.EnvironmentPart)
	if err != nil {
		return nil, nil, 0, err
	}
	if err := by.RequireUser(); err != nil {
		return nil, nil, 0, err
	}
	if err := p.Change(by, project.EnvironmentPart, project.Reporter); err != nil {
		return nil, nil, 0, err
	}
	d, err := s.Get(ctx, by, in, id)
	if err != nil {
		return nil, nil, 0, err
	}
	if utf8.RuneCountInString(c.Comment) > maxComment {
		return nil, nil, 0, errs.Refused("Comment is too long (maximum is %d characters)", maxComment)
	}
	r, err := s.ReviewOf(ctx, p, d)
	if err != nil {
		return nil, nil, 0, err
	}
	if !r.Required() {
		return nil, nil, 0, errs.Refused("Deployment approvals is not supported for this environment.")
	}
	if d.Status != Blocked {
		return nil, nil, 0, errs.Refused("This deployment is not waiting for approvals.")
	}
	list, err := s.Protections(ctx, p, d.Environment.Name, d.Environment.Tier)
	if err != nil {
		return nil, nil, 0, err
	}
	a := &Approval{DeploymentID: d.ID, UserID: by.ID, Approved: c.Approve, Comment: c.Comment, CreatedAt: s.Now()}
	matched := false
	for _, rule := range r.Rules {
		ok, err := s.counts(ctx, by, p, rule, list)
		if err != nil {
			return nil, nil, 0, err
		}
		if !ok || c.RepresentedAs != "" && (rule.EnvironmentRule == nil || rule.Description() != c.RepresentedAs) {
			continue
		}
		if matched = true; c.RepresentedAs != "" {
			a.RuleID = &rule.ID
			break
		}
	}
	if !matched {
		if c.RepresentedAs != "" {
			return nil, nil, 0, errs.Refused("There are no rules for the given `represent_as` parameter. Use a valid User/Group/Role name instead.")
		}
		return nil, nil, 0, errs.Refused("You don't have permission to approve this deployment. Contact the project or group owner for help.")
	}
	if c.Approve && d.UserID != nil && by.Is(*d.UserID) && !p.Settings.CITriggererMayApprove {
		return nil, nil, 0, errs.Refused("You cannot approve your own deployment. This configuration can be adjusted in the protected environment settings.")
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := saveApproval(ctx, tx, a); err != nil {
			return err
		}
		word := "approved"
		if !a.Approved {
			word = "rejected"
		}
		return audit.Record(ctx, tx, by, s.Now(), audit.Event{
			Type: "deployment_" + word, Entity: audit.Entity{Type: audit.ProjectEntity, ID: p.ID, Path: p.FullPath},
			Target: audit.Target{Type: "Deployment", ID: d.ID, Details: d.Environment.Name}, Details: audit.Details{Message: "Deployment " + word},
		})
	})
	if err != nil {
		return nil, nil, 0, fmt.Errorf("decide on deployment %d: %w", d.ID, err)
	}
	if r, err = s.ReviewOf(ctx, p, d); err != nil {
		return nil, nil, 0, err
	}
	if at := slices.IndexFunc(r.Approvals, func(x *Approval) bool { return x.UserID == by.ID }); at >= 0 {
		a = r.Approvals[at]
	}
	return d, a, r.Pending(), nil
}

// CanDecide reports whether an actor may approve or reject a deployment.
func (s *Service) CanDecide(ctx context.Context, by actor.Actor, p *project.Project, d *Deployment, r *Review) (bool, error) {
	if d.Status != Blocked || !r.Required() || by.Anonymous() || !p.MayChange(by, project.EnvironmentPart, project.Reporter) {
		return false, nil
	}
	list, err := s.Protections(ctx, p, d.Environment.Name, d.Environment.Tier)
	if err != nil {
		return false, err
	}
	for _, rule := range r.Rules {
		if ok, err := s.counts(ctx, by, p, rule, list); err != nil || ok {
			return ok, err
		}
	}
	return false, nil
}
