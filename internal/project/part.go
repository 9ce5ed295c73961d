package project

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/memo"
)

// Part is a part of a project with its own access rules.
type Part int

// The parts.
const (
	CodePart          Part = iota + 1
	IssuePart              // issues, milestones, boards
	ConfidentialPart       // confidential issues of others, internal notes
	MergePart              // merge requests
	SnippetPart            // snippets that are not limited to members
	MemberSnippetPart      // all snippets
	WikiPart
	ReleasePart     // releases; their source code is CodePart
	BuildsPart      // pipelines, jobs, artifacts, schedules
	EnvironmentPart // environments and deployments
	PagesPart       // settings and domains of the site
	PackagePart     // the package registry
	AlertPart
	ErrorPart          // error tracking
	InfrastructurePart // Terraform states
	FeatureFlagPart    // feature flags and their user lists
	SettingsPart       // settings for Maintainers: variables, runners, triggers, agents, tokens
	WholePart          // everything else, such as labels and uploads, which everyone who can see the project may read
)

// MayRead reports whether the actor may read a part of a project that they can
// see. Guests can read issues, wiki and snippets, Planners confidential issues,
// and Reporters code and merge requests. If the project is not private, everyone
// can read the parts that are not limited to members.
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

// MayReadMergeRefs reports whether the actor may see objects of merge request
// refs, such as pipelines. That requires access to merge requests, or Reporter if
// merge requests are disabled: a fork has pipelines for merge requests in another
// project.
func (p *Project) MayReadMergeRefs(by actor.Actor) bool {
	return p.MayRead(by, MergePart) || p.levelOf(by) >= Reporter
}

// changeable returns Forbidden if the project is archived.
func (p *Project) changeable() error {
	if p.Archived {
		return errs.Forbidden("The project is archived: nothing in it can be changed.")
	}
	return nil
}

// Enough returns an error if the actor, who can see the project, has less than the
// level.
func (p *Project) Enough(by actor.Actor, level Level) error {
	return enough(by, p.Access.Level(), level)
}

// Joined returns the projects that the actor is a member of, directly, by a group
// or by a share, with their access.
func (s *Service) Joined(ctx context.Context, by actor.Actor) ([]*Project, error) {
	list, err := findJoined(ctx, s.DB, by.ID, s.today())
	if err != nil {
		return nil, fmt.Errorf("projects of user %d: %w", by.ID, err)
	}
	for part := range slices.Chunk(list, accessBatch) {
		if err := s.fillAccess(ctx, by, part); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// accessBatch is the number of projects whose access is read at once: each is a
// placeholder in a statement.
const accessBatch = 500

// Among returns the projects among ids that the actor can see, with their access.
func (s *Service) Among(ctx context.Context, by actor.Actor, ids []int64) ([]*Project, error) {
	if memo.On(ctx) && len(ids) == 1 {
		p, err := s.Require(ctx, by, RefTo(ids[0]), NoAccess)
		if errs.Is(err, errs.KindNotFound) {
			return nil, nil
		}
		return []*Project{p}, err
	}
	var seen []*Project
	for len(ids) > 0 {
		part := ids[:min(accessBatch, len(ids))]
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

// Readable returns the condition on projects p of which the actor may read a part,
// for lists of other features. It must agree with MayRead.
func (s *Service) Readable(by actor.Actor, part Part) (cond string, args []any) {
	return readable(by, s.today(), part)
}
