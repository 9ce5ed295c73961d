package merge

import (
	"context"

	"svc/internal/actor"
	"svc/internal/project"
)

// ApprovalConfig are the approval settings that apply in a project.
type ApprovalConfig struct {
	project.ApprovalSettings
	Locked project.ApprovalLimits // enforced by the top-level group
}

func approvalConfig(in *project.Project) ApprovalConfig {
	return ApprovalConfig{in.MergeSettings().Approvals, in.Inherited.Approvals}
}

// ApprovalConfig returns the approval settings of a project to users who can read
// its merge requests. NotFound.
func (s *Service) ApprovalConfig(ctx context.Context, by actor.Actor, ref project.Ref) (ApprovalConfig, error) {
	in, err := s.viewRules(ctx, by, ref)
	if err != nil {
		return ApprovalConfig{}, err
	}
	return approvalConfig(in), nil
}

// ConfigureApprovals changes the approval settings of a project, for Maintainers and
// above. Settings that the top-level group enforces are saved, but have no effect as
// long as it enforces them. NotFound; Forbidden; Invalid.
func (s *Service) ConfigureApprovals(ctx context.Context, by actor.Actor, ref project.Ref, change func(*project.ApprovalSettings)) (ApprovalConfig, error) {
	in, err := s.manageRules(ctx, by, ref)
	if err != nil {
		return ApprovalConfig{}, err
	}
	p, err := s.Projects.Update(ctx, by, project.RefTo(in.ID), project.Change{Fields: project.Fields{Settings: func(set *project.Settings) { change(&set.Approvals) }}})
	if err != nil {
		return ApprovalConfig{}, err
	}
	return approvalConfig(p), nil
}
