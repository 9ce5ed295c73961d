package plan

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/plan/listing"
	"svc/internal/project"
)

// IssueFilter selects issues. Zero values match everything.
type IssueFilter struct {
	listing.Filter
	IDs          []int64
	NotIDs       []int64
	Confidential *bool
	Types        []string
	Due          string // 0, any, today, tomorrow, overdue, week, month, next_month_and_previous_two_weeks

	listing.Match
	Not listing.Match // negated conditions
}

// Issues lists the issues of all projects that the actor can see.
func (s *Service) Issues(ctx context.Context, by actor.Actor, f IssueFilter, order listing.Sort, p db.Paging) (db.Page[*Issue], error) {
	return s.listIssues(ctx, by, place{}, f, order, p)
}

// PlaceIssues lists the issues of a project or of all projects of a group that the
// actor can see. NotFound.
func (s *Service) PlaceIssues(ctx context.Context, by actor.Actor, at project.Place, f IssueFilter, order listing.Sort, p db.Paging) (db.Page[*Issue], error) {
	in, err := s.issuesAt(ctx, by, at)
	if err != nil {
		return db.Page[*Issue]{}, err
	}
	return s.listIssues(ctx, by, in, f, order, p)
}

func (s *Service) issuesAt(ctx context.Context, by actor.Actor, at project.Place) (place, error) {
	in, err := s.at(ctx, by, at, project.NoAccess)
	if err == nil && in.project != nil && !in.project.MayRead(by, project.IssuePart) {
		err = errs.NotFound("")
	}
	return in, err
}

func (s *Service) listIssues(ctx context.Context, by actor.Actor, in place, f IssueFilter, order listing.Sort, p db.Paging) (db.Page[*Issue], error) {
	found, err := s.selectIssues(ctx, by, in, &f, order.By)
	if err != nil {
		return db.Page[*Issue]{}, fmt.Errorf("list issues: %w", err)
	}
	w := s.issuesIn(by, in)
	s.narrow(&w, by, f)
	page, err := listIssues(ctx, s.DB, w, found, order, p)
	if err != nil {
		return page, fmt.Errorf("list issues: %w", err)
	}
	return page, s.FillIssues(ctx, page.Items...)
}

// Counts is the number of issues or merge requests in each state.
type Counts struct{ All, Opened, Closed, Merged int64 }

// CountIssues counts the issues that PlaceIssues lists, or those of all projects if
// at is nil. Counting stops after db.CountLimit: a greater number is a lower bound.
func (s *Service) CountIssues(ctx context.Context, by actor.Actor, at *project.Place, f IssueFilter) (c Counts, err error) {
	var in place
	if at != nil {
		if in, err = s.issuesAt(ctx, by, *at); err != nil {
			return c, err
		}
	}
	f.State = ""
	found, err := s.selectIssues(ctx, by, in, &f, "")
	if err != nil {
		return c, fmt.Errorf("count issues: %w", err)
	}
	w := s.issuesIn(by, in)
	s.narrow(&w, by, f)
	if err := listing.TotalStates(ctx, s.DB, issueTables, w, found, map[State]*int64{Opened: &c.Opened, Closed: &c.Closed}); err != nil {
		return c, fmt.Errorf("count issues: %w", err)
	}
	c.All = c.Opened + c.Closed
	return c, nil
}

// CountOpen counts the open issues of a project that the actor can see. over
// reports that there are more than n.
func (s *Service) CountOpen(ctx context.Context, by actor.Actor, proj *project.Project) (n int, over bool, err error) {
	if !proj.MayRead(by, project.IssuePart) {
		return 0, false, nil
	}
	w := s.issuesIn(by, place{project: proj})
	s.narrow(&w, by, IssueFilter{Filter: listing.Filter{State: Opened}})
	if n, over, err = totalIssues(ctx, s.DB, w); err != nil {
		return 0, false, fmt.Errorf("count open issues of project %d: %w", proj.ID, err)
	}
	return n, over, nil
}

// CountAssigned counts the open issues that are assigned to the actor, up to a
// limit.
func (s *Service) CountAssigned(ctx context.Context, by actor.Actor, limit int) (int, error) {
	n, err := countAssigned(ctx, s.DB, s.issuesIn(by, place{}), by.ID, limit)
	if err != nil {
		return 0, fmt.Errorf("count issues of user %d: %w", by.ID, err)
	}
	return n, nil
}

// MilestoneIssues lists the issues of a milestone that the actor can see.
// NotFound.
func (s *Service) MilestoneIssues(ctx context.Context, by actor.Actor, at project.Place, id int64, p db.Paging) (db.Page[*Issue], error) {
	m, err := s.Milestone(ctx, by, at, id)
	if err != nil {
		return db.Page[*Issue]{}, err
	}
	in, err := s.issuesAt(ctx, by, at)
	if err != nil {
		return db.Page[*Issue]{}, err
	}
	f := IssueFilter{Match: listing.Match{MilestoneID: fmt.Sprint(m.ID)}}
	return s.listIssues(ctx, by, in, f, listing.Sort{By: "created_at", Desc: true}, p)
}

// IssuesAmong returns the issues among ids that the actor can see, oldest first.
func (s *Service) IssuesAmong(ctx context.Context, by actor.Actor, ids []int64) ([]*Issue, error) {
	if len(ids) == 0 {
		return []*Issue{}, nil
	}
	w := s.issuesIn(by, place{})
	s.narrow(&w, by, IssueFilter{IDs: ids})
	page, err := listIssues(ctx, s.DB, w, listing.Selection{Among: ids}, listing.Sort{By: "created_at"}, db.Paging{Limit: len(ids)})
	if err != nil {
		return nil, fmt.Errorf("find issues: %w", err)
	}
	return page.Items, s.FillIssues(ctx, page.Items...)
}

// OpenCounts counts the open issues of projects that the actor can see, each up to
// a limit. Projects whose issues the actor cannot read are left out.
func (s *Service) OpenCounts(ctx context.Context, by actor.Actor, list []*project.Project) (map[int64]*int64, error) {
	counts := map[int64]*int64{}
	for _, confidential := range []bool{true, false} {
		var ids []int64
		for _, p := range list {
			if p.MayRead(by, project.IssuePart) && p.MayRead(by, project.ConfidentialPart) == confidential {
				ids = append(ids, p.ID)
			}
		}
		if err := countOpen(ctx, s.DB, ids, confidential, counts); err != nil {
			return nil, fmt.Errorf("count open issues: %w", err)
		}
	}
	return counts, nil
}
