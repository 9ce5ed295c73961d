package project

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/errs"
)

// Part is a part of a project that not everyone reads who sees the project.
type Part int

// The parts.
const (
	CodePart          Part = iota + 1
	IssuePart              // issues, milestones, boards
	ConfidentialPart       // confidential issues of others, internal notes
	MergePart              // merge requests
	SnippetPart            // snippets that are not for members alone
	MemberSnippetPart      // all snippets
	WikiPart
	ReleasePart     // releases; what they say of the repository is CodePart
	BuildsPart      // pipelines, jobs, artifacts, schedules
	EnvironmentPart // environments and deployments
	PagesPart       // the settings and domains of the site
	PackagePart     // the package registry
	AlertPart
	ErrorPart          // errors that programs report
	InfrastructurePart // Terraform states
	FeatureFlagPart    // feature flags and their user lists
	SettingsPart       // what Maintainers set up: variables, runners, triggers, agents, tokens
	WholePart          // what belongs to no part alone, like labels and uploads: all read it who see the project
)

// MayRead reports whether an actor with access to the project may read a part of
// it: Guests and above read issues, wiki and snippets, Reporters and above code
// and merge requests, Planners and above what is confidential. Everyone who sees a
// project that is not private reads what is for everyone.
func (p *Project) MayRead(by actor.Actor, part Part) bool {
	level := p.levelOf(by)
	switch part {
	case WholePart:
		return true
	case CodePart, BuildsPart, EnvironmentPart, PackagePart, AlertPart, InfrastructurePart, FeatureFlagPart, SettingsPart:
		return p.View(by, part) == nil
	case IssuePart:
		return p.Issues == Enabled || p.Issues != Disabled && level >= Guest
	case ConfidentialPart:
		return p.Issues != Disabled && level >= Planner
	case MergePart:
		open := p.MergeRequests == Enabled && p.Visibility != Private
		return p.readable(by) == nil && (open || p.MergeRequests != Disabled && level >= Reporter)
	case SnippetPart:
		return p.Settings.Snippets == Enabled || p.Settings.Snippets != Disabled && level >= Guest
	case MemberSnippetPart:
		return p.Settings.Snippets != Disabled && level >= Guest
	case WikiPart:
		return p.Settings.Wiki == Enabled || p.Settings.Wiki != Disabled && level >= Guest
	case ReleasePart:
		return p.Settings.Releases == Enabled || p.Settings.Releases != Disabled && level >= Guest
	case PagesPart:
		return p.Settings.Pages != Disabled && enough(by, p.Access.Level(), Maintainer) == nil
	case ErrorPart:
		return p.Settings.Monitor != Disabled && level >= Reporter
	}
	return false
}

// MayReadMergeRefs reports whether an actor with access to the project sees what
// was made of the refs of merge requests, like pipelines: who may read the merge
// requests, and Reporters and above also where merge requests are switched off.
// A fork has the pipelines of merge requests of another project.
func (p *Project) MayReadMergeRefs(by actor.Actor) bool {
	return p.MayRead(by, MergePart) || p.levelOf(by) >= Reporter
}

// changeable refuses what would change something in a project that is
// archived.
func (p *Project) changeable() error {
	if p.Archived {
		return errs.Forbidden("The project is archived: nothing in it can be changed.")
	}
	return nil
}

// Enough refuses one who sees the project and has less than the level there.
func (p *Project) Enough(by actor.Actor, level Level) error {
	return enough(by, p.Access.Level(), level)
}

// Joined returns the projects that the actor is a member of, with what they are
// in each: by themselves, by a group or by a share.
func (s *Service) Joined(ctx context.Context, by actor.Actor) ([]*Project, error) {
	list, err := findJoined(ctx, s.DB, by.ID, s.today())
	if err != nil {
		return nil, fmt.Errorf("projects of user %d: %w", by.ID, err)
	}
	return list, s.fillAccess(ctx, by, list)
}

// Among returns those of the projects that the actor sees, with what they are
// in each.
func (s *Service) Among(ctx context.Context, by actor.Actor, ids []int64) ([]*Project, error) {
	const most = 500 // placeholders of one statement
	var seen []*Project
	for len(ids) > 0 {
		part := ids[:min(most, len(ids))]
		ids = ids[len(part):]
		list, err := findProjects(ctx, s.DB, part)
		if err != nil {
			return nil, fmt.Errorf("find projects: %w", err)
		}
		if err := s.fillAccess(ctx, by, list); err != nil {
			return nil, err
		}
		for _, p := range list {
			if visible(by, p.Visibility, p.Access.Level()) {
				seen = append(seen, p)
			}
		}
	}
	return seen, nil
}

func (s *Service) fillAccess(ctx context.Context, by actor.Actor, list []*Project) error {
	all, err := s.accesses(ctx, s.DB, by, list)
	if err != nil {
		return fmt.Errorf("access to projects: %w", err)
	}
	for _, p := range list {
		p.Access = all[p.ID]
	}
	return nil
}

// Readable is a condition on projects p, for lists of other features: those of
// which the actor may read the part. It says in SQL what MayRead says.
func (s *Service) Readable(by actor.Actor, part Part) (cond string, args []any) {
	return readable(by, s.today(), part)
}
