package merge

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// checkRules returns an error if the actor may not change the approval rules of a
// merge request that they can see. Developers and above may, while it is open and
// the project allows it.
func (m *MergeRequest) checkRules(by actor.Actor, in *project.Project) error {
	if err := changeable(by, in); err != nil {
		return err
	}
	if err := in.Enough(by, project.Developer); err != nil {
		return err
	}
	if in.MergeSettings().Approvals.DisableOverriding {
		return errs.Forbidden("This project prevents editing approval rules in merge requests.")
	}
	if m.State != Opened {
		return errs.Forbidden("The merge request is %s.", m.State)
	}
	return nil
}

// RequestRules lists the approval rules of a merge request, including code owner
// rules but not the project rules, for signed-in users who can see it. NotFound.
func (s *Service) RequestRules(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, p db.Paging) (db.Page[*ApprovalRule], error) {
	in, list, err := s.viewRequestRules(ctx, by, ref, iid)
	if err != nil {
		return db.Page[*ApprovalRule]{}, err
	}
	page := db.SlicePage(list, p)
	return page, s.fillRequestRules(ctx, by, in, page.Items...)
}

// RequestRule returns an approval rule of a merge request to signed-in users who
// can see it. NotFound.
func (s *Service) RequestRule(ctx context.Context, by actor.Actor, ref project.Ref, iid, id int64) (*ApprovalRule, error) {
	in, list, err := s.viewRequestRules(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	r, err := ruleAmong(list, id)
	if err != nil {
		return nil, err
	}
	return r, s.fillRequestRules(ctx, by, in, r)
}

func (s *Service) viewRequestRules(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (*project.Project, []*ApprovalRule, error) {
	in, m, err := s.current(ctx, by, ref, iid)
	if err != nil {
		return nil, nil, err
	}
	if err := by.RequireUser(); err != nil {
		return nil, nil, err
	}
	if err := s.complete(ctx, by, in, m); err != nil { // creates the code owner rules
		return nil, nil, err
	}
	list, err := findRequestRules(ctx, s.DB, []int64{m.ID})
	if err != nil {
		return nil, nil, fmt.Errorf("approval rules of merge request %d: %w", m.ID, err)
	}
	return in, list, nil
}

func (s *Service) fillRequestRules(ctx context.Context, by actor.Actor, in *project.Project, list ...*ApprovalRule) error {
	if err := s.fillRules(ctx, by, in, list...); err != nil {
		return err
	}
	return s.fillSources(ctx, by, in, list...)
}

// changeRules changes the approval rules of a merge request in a transaction. own
// are its rules without code owner rules.
func (s *Service) changeRules(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, f func(tx *db.Tx, in *project.Project, m *MergeRequest, own []*ApprovalRule) error) error {
	in, m, err := s.request(ctx, by, ref, iid)
	if err != nil {
		return err
	}
	if err := m.checkRules(by, in); err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		now, err := lockRequest(ctx, tx, m.ID)
		if err != nil {
			return err
		}
		if err := now.checkRules(by, in); err != nil {
			return err
		}
		own, err := findRequestRules(ctx, tx, []int64{m.ID})
		if err != nil {
			return err
		}
		own = slices.DeleteFunc(own, func(r *ApprovalRule) bool { return r.Type == CodeOwner })
		if err := f(tx, in, now, own); err != nil {
			return err
		}
		return s.continueAuto(ctx, tx, now) // it may need fewer approvals now
	})
	if err != nil {
		return fmt.Errorf("approval rules of merge request %d: %w", m.ID, err)
	}
	return nil
}

// copied returns a copy of a project rule for a merge request.
func (r *ApprovalRule) copied(m *MergeRequest) *ApprovalRule {
	c := &ApprovalRule{
		ProjectID: r.ProjectID, RequestID: &m.ID, Type: r.Type, Name: r.Name, Required: r.Required, CreatedAt: r.CreatedAt,
		userIDs: slices.Clone(r.userIDs), groupIDs: slices.Clone(r.groupIDs),
	}
	if r.ID != 0 {
		c.SourceID = &r.ID
	}
	return c
}

// inherited returns copies of the project rules that apply to a merge request
// without rules.
func (s *Service) inherited(ctx context.Context, in *project.Project, m *MergeRequest) ([]*ApprovalRule, error) {
	projects := map[int64]*project.Project{in.ID: in}
	cases, err := s.approvalCases(ctx, []*MergeRequest{m}, projects, s.newEligibility(projects))
	if err != nil {
		return nil, err
	}
	var list []*ApprovalRule
	for _, r := range cases[0].rules {
		if r.Type != CodeOwner && r.RequestID == nil {
			list = append(list, r.copied(m))
		}
	}
	return list, nil
}

// CreateRequestRule creates an approval rule of a merge request, for Developers and
// above. The rules of a merge request replace the project rules, so these are copied
// with the first one. NotFound; Forbidden; Invalid.
func (s *Service) CreateRequestRule(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, f RuleFields) (*ApprovalRule, error) {
	in, m, err := s.request(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	if err := m.checkRules(by, in); err != nil {
		return nil, err
	}
	r := &ApprovalRule{ProjectID: in.ID, RequestID: &m.ID, Type: Regular}
	if f.Type != "" {
		r.Type = f.Type
	}
	if f.SourceID != 0 {
		source, err := s.projectRule(ctx, by, in, f.SourceID)
		if errs.Is(err, errs.KindNotFound) {
			return nil, errs.InvalidField("approval_project_rule_id", "is not a rule of the project")
		}
		if err != nil {
			return nil, err
		}
		r = source.copied(m)
		f = RuleFields{Required: f.Required}
	}
	r.CreatedAt, f.BranchIDs, f.AllProtected = s.Now(), nil, nil
	if err := s.applyRule(ctx, by, in, r, f); err != nil {
		return nil, err
	}
	first, err := s.inherited(ctx, in, m)
	if err != nil {
		return nil, err
	}
	err = s.changeRules(ctx, by, ref, iid, func(tx *db.Tx, in *project.Project, m *MergeRequest, own []*ApprovalRule) error {
		if len(own) == 0 {
			for _, c := range first {
				if c.replacedBy(r) {
					continue
				}
				if err := insertRule(ctx, tx, c); err != nil {
					return err
				}
				own = append(own, c)
			}
		}
		if err := room(own, r); err != nil {
			return err
		}
		if err := insertRule(ctx, tx, r); err != nil {
			return err
		}
		return s.recordRequestRule(ctx, tx, by, in, m, r, "approval_rule_created", audit.Details{Add: "approval rule"})
	})
	if err != nil {
		return nil, err
	}
	return s.RequestRule(ctx, by, project.RefTo(in.ID), iid, r.ID)
}

// replacedBy reports whether a new rule replaces a copied rule: both are copies of
// the same project rule, or both are for any approver.
func (r *ApprovalRule) replacedBy(by *ApprovalRule) bool {
	return r.SourceID != nil && by.SourceID != nil && *r.SourceID == *by.SourceID || r.Type == AnyApprover && by.Type == AnyApprover
}

func (s *Service) recordRequestRule(ctx context.Context, tx *db.Tx, by actor.Actor, in *project.Project, m *MergeRequest, r *ApprovalRule, kind string, d audit.Details) error {
	d.Message = fmt.Sprintf("Approval rule %s of merge request !%d", r.Name, m.IID)
	return s.recordRule(ctx, tx, by, in, r, kind, d)
}

// UpdateRequestRule changes an approval rule of a merge request, for Developers
// and above. Rules for code owners cannot be changed. NotFound; Forbidden;
// Invalid.
func (s *Service) UpdateRequestRule(ctx context.Context, by actor.Actor, ref project.Ref, iid, id int64, f RuleFields) (*ApprovalRule, error) {
	in, m, err := s.request(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	if err := m.checkRules(by, in); err != nil {
		return nil, err
	}
	r, err := s.RequestRule(ctx, by, ref, iid, id)
	if err != nil {
		return nil, err
	}
	if r.Type == CodeOwner {
		return nil, errs.Forbidden("Code owner rules come from the CODEOWNERS file.")
	}
	was := *r
	f.BranchIDs, f.AllProtected = nil, nil
	if err := s.applyRule(ctx, by, in, r, f); err != nil {
		return nil, err
	}
	err = s.changeRules(ctx, by, ref, iid, func(tx *db.Tx, in *project.Project, m *MergeRequest, own []*ApprovalRule) error {
		if _, err := ruleAmong(own, id); err != nil {
			return err
		}
		if err := room(own, r); err != nil {
			return err
		}
		if err := saveRule(ctx, tx, r); err != nil {
			return err
		}
		d := audit.Details{Change: "approval rule", From: was.summary(), To: r.summary()}
		return s.recordRequestRule(ctx, tx, by, in, m, r, "approval_rule_updated", d)
	})
	if err != nil {
		return nil, err
	}
	return s.RequestRule(ctx, by, project.RefTo(in.ID), iid, id)
}

// DeleteRequestRule deletes an approval rule of a merge request, for Developers and
// above. After the last one is deleted, the project rules apply again. NotFound;
// Forbidden.
func (s *Service) DeleteRequestRule(ctx context.Context, by actor.Actor, ref project.Ref, iid, id int64) error {
	in, m, err := s.request(ctx, by, ref, iid)
	if err != nil {
		return err
	}
	if err := m.checkRules(by, in); err != nil {
		return err
	}
	r, err := s.RequestRule(ctx, by, ref, iid, id)
	if err != nil {
		return err
	}
	if r.Type == CodeOwner {
		return errs.Forbidden("Code owner rules come from the CODEOWNERS file.")
	}
	return s.changeRules(ctx, by, ref, iid, func(tx *db.Tx, in *project.Project, m *MergeRequest, own []*ApprovalRule) error {
		if err := deleteRule(ctx, tx, id); err != nil {
			return db.NotFound(err, "")
		}
		return s.recordRequestRule(ctx, tx, by, in, m, r, "approval_rule_deleted", audit.Details{Remove: "approval rule"})
	})
}

// ResetRequestRules deletes the approval rules of a merge request, so that the
// project rules apply again, for Developers and above. NotFound; Forbidden.
func (s *Service) ResetRequestRules(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) error {
	return s.changeRules(ctx, by, ref, iid, func(tx *db.Tx, in *project.Project, m *MergeRequest, own []*ApprovalRule) error {
		for _, r := range own {
			if err := deleteRule(ctx, tx, r.ID); err != nil {
				return err
			}
			if err := s.recordRequestRule(ctx, tx, by, in, m, r, "approval_rule_deleted", audit.Details{Remove: "approval rule"}); err != nil {
				return err
			}
		}
		return nil
	})
}

// RequireApprovals sets the number of approvals that the rule for any approver of
// a merge request requires, for Developers and above. NotFound; Forbidden;
// Invalid.
func (s *Service) RequireApprovals(ctx context.Context, by actor.Actor, ref project.Ref, iid, required int64) (*MergeRequest, *Approvals, error) {
	in, m, err := s.request(ctx, by, ref, iid)
	if err != nil {
		return nil, nil, err
	}
	if err := m.checkRules(by, in); err != nil {
		return nil, nil, err
	}
	list, err := findRequestRules(ctx, s.DB, []int64{m.ID})
	if err != nil {
		return nil, nil, fmt.Errorf("approval rules of merge request %d: %w", m.ID, err)
	}
	if at := slices.IndexFunc(list, isAny); at >= 0 {
		_, err = s.UpdateRequestRule(ctx, by, ref, iid, list[at].ID, RuleFields{Required: &required})
	} else {
		name := anyName
		_, err = s.CreateRequestRule(ctx, by, ref, iid, RuleFields{Type: AnyApprover, Name: &name, Required: &required})
	}
	if err != nil {
		return nil, nil, err
	}
	return s.ApprovalState(ctx, by, project.RefTo(in.ID), iid)
}
