package merge

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/plan/listing"
	"svc/internal/project"
	"svc/internal/queue"
)

// Filter selects merge requests; zero values select all.
type Filter struct {
	listing.Filter
	Draft           *bool
	SourceBranch    string
	TargetBranch    string
	SourceProjectID int64
	MergeUserID     int64
	MergeUsername   string
	Approved        *bool    // has at least one approval
	ApproverIDs     []string // users listed in approval rules; or None or Any alone
	ApprovedByIDs   []string // users who have all approved; or None or Any alone
	ApprovedByNames []string
	Recheck         bool // check unknown mergeability in background jobs

	Match
	Not Match // negated conditions
}

// Match has the conditions that can also be negated.
type Match struct {
	listing.Match
	ReviewerID        string // an ID, None or Any
	ReviewerUsernames []string
}

// List lists the merge requests that the actor can see in all projects.
func (s *Service) List(ctx context.Context, by actor.Actor, f Filter, order listing.Sort, p db.Paging) (db.Page[*MergeRequest], error) {
	return s.list(ctx, s.visible(by, nil), listing.Area{}, by, f, order, p)
}

// PlaceList lists the merge requests of a project, or of all projects of a
// group, that the actor can see. NotFound if the actor cannot see the project
// or group, or the merge requests of the project.
func (s *Service) PlaceList(ctx context.Context, by actor.Actor, at project.Place, f Filter, order listing.Sort, p db.Paging) (db.Page[*MergeRequest], error) {
	w, in, err := s.at(ctx, by, at)
	if err != nil {
		return db.Page[*MergeRequest]{}, err
	}
	return s.list(ctx, w, in, by, f, order, p)
}

// OfMilestone lists the merge requests of a project or group with a milestone,
// for users who can see both. NotFound.
func (s *Service) OfMilestone(ctx context.Context, by actor.Actor, at project.Place, id int64, p db.Paging) (db.Page[*MergeRequest], error) {
	m, err := s.Plan.Milestone(ctx, by, at, id)
	if err != nil {
		return db.Page[*MergeRequest]{}, err
	}
	f := Filter{Match: Match{Match: listing.Match{MilestoneID: strconv.FormatInt(m.ID, 10)}}}
	return s.PlaceList(ctx, by, at, f, listing.Sort{By: "created_at", Desc: true}, p)
}

// at returns the conditions on merge requests of a project or group, and its area.
func (s *Service) at(ctx context.Context, by actor.Actor, at project.Place) (w db.Where, in listing.Area, err error) {
	if at.Group {
		g, err := s.Projects.RequireGroup(ctx, by, at.Ref, project.NoAccess)
		if err != nil {
			return w, in, err
		}
		return s.visible(by, &g.ID), listing.Area{Group: g.ID}, nil
	}
	of, err := s.Projects.RequireView(ctx, by, at.Ref, project.MergePart)
	if err != nil {
		return w, in, err
	}
	return inProject(of.ID), listing.Area{Project: of.ID}, nil
}

func (s *Service) list(ctx context.Context, w db.Where, in listing.Area, by actor.Actor, f Filter, order listing.Sort, p db.Paging) (db.Page[*MergeRequest], error) {
	found, err := s.selectRequests(ctx, by, in, &f, order.By)
	if err != nil {
		return db.Page[*MergeRequest]{}, fmt.Errorf("list merge requests: %w", err)
	}
	s.narrow(&w, by, f)
	page, err := listRequests(ctx, s.DB, w, found, order, p)
	if err != nil {
		return page, fmt.Errorf("list merge requests: %w", err)
	}
	if err := s.fill(ctx, page.Items...); err != nil || !f.Recheck || by.Anonymous() || !slices.ContainsFunc(page.Items, (*MergeRequest).unknown) {
		return page, err
	}
	return page, s.addChecks(ctx, page.Items)
}

// unknown reports whether a merge request is open and its mergeability is unknown.
func (m *MergeRequest) unknown() bool { return m.State == Opened && !m.check.known() }

// addChecks adds background jobs that check the open merge requests whose
// mergeability is unknown.
func (s *Service) addChecks(ctx context.Context, list []*MergeRequest) error {
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		for _, m := range list {
			if !m.unknown() {
				continue
			}
			if err := s.Queue.Add(ctx, tx, checkWork{m.ID}, queue.In(lane), queue.Unique()); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkWork is the background job that checks the mergeability of a merge
// request.
type checkWork struct {
	ID int64 `json:"id"`
}

// Kind implements queue.Work.
func (checkWork) Kind() string { return "merge_check" }

func (s *Service) workCheck(ctx context.Context, w checkWork) error {
	m, err := findRequestByID(ctx, s.DB, w.ID)
	if err != nil {
		return ignoreRefusal(db.NotFound(err, "Merge Request"))
	}
	_, err = s.Get(ctx, actor.System(), project.RefTo(m.ProjectID), m.IID)
	return ignoreRefusal(err)
}

// Total counts the merge requests that PlaceList would list, by state; if at is nil,
// those of all projects. Each count is at most db.CountLimit + 1.
func (s *Service) Total(ctx context.Context, by actor.Actor, at *project.Place, f Filter) (c plan.Counts, err error) {
	w, in := s.visible(by, nil), listing.Area{}
	if at != nil {
		if w, in, err = s.at(ctx, by, *at); err != nil {
			return c, err
		}
	}
	f.State = ""
	found, err := s.selectRequests(ctx, by, in, &f, "")
	if err != nil {
		return c, fmt.Errorf("count merge requests: %w", err)
	}
	s.narrow(&w, by, f)
	err = listing.TotalStates(ctx, s.DB, tables, w, found, map[plan.State]*int64{Opened: &c.Opened, Closed: &c.Closed, Merged: &c.Merged})
	if err != nil {
		return c, fmt.Errorf("count merge requests: %w", err)
	}
	c.All = c.Opened + c.Closed + c.Merged
	return c, nil
}

// OfCommit lists the merge requests of a project that contain a commit or whose
// merge created it, for users who can see them. NotFound.
func (s *Service) OfCommit(ctx context.Context, by actor.Actor, ref project.Ref, rev string, p db.Paging) (db.Page[*MergeRequest], error) {
	none := db.Page[*MergeRequest]{Items: []*MergeRequest{}}
	in, c, err := s.Repos.Commit(ctx, by, ref, rev, false)
	if err != nil {
		return none, err
	}
	if !in.MayRead(by, project.MergePart) {
		return none, errs.NotFound("")
	}
	page, err := listOfCommit(ctx, s.DB, in.ID, string(c.ID), p)
	if err != nil {
		return page, fmt.Errorf("merge requests of commit: %w", err)
	}
	return page, s.fill(ctx, page.Items...)
}

// CountOpen counts the open merge requests of a project that the actor can see; 0 if
// the actor cannot see its merge requests. over reports that there are more than n.
func (s *Service) CountOpen(ctx context.Context, by actor.Actor, in *project.Project) (n int, over bool, err error) {
	if !in.MayRead(by, project.MergePart) {
		return 0, false, nil
	}
	w := inProject(in.ID)
	listing.Narrow(&w, listing.MergeRequests, by, listing.Filter{State: Opened})
	if n, over, err = totalRequests(ctx, s.DB, w); err != nil {
		return 0, false, fmt.Errorf("count open merge requests of project %d: %w", in.ID, err)
	}
	return n, over, nil
}
