package merge

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/plan"
	"svc/internal/plan/listing"
	"svc/internal/project"
)

// Activity is a kind of new objects in a group.
type Activity int

// The kinds of new objects.
const (
	NewIssues Activity = iota
	NewRequests
	NewMembers
)

// The maximum age of new objects, and the highest number that is returned.
const (
	activityAge  = 90 * 24 * time.Hour
	activityMost = 1000
)

// GroupActivity counts the issues or merge requests of the projects of a group that
// were created in the last 90 days and that the actor can see, or the members who
// joined the group in that time, up to 1000. Requires Reporter. NotFound; Forbidden.
func (s *Service) GroupActivity(ctx context.Context, by actor.Actor, ref project.Ref, what Activity) (int64, error) {
	g, err := s.Projects.RequireGroup(ctx, by, ref, project.Reporter)
	if err != nil {
		return 0, err
	}
	since := s.Now().Add(-activityAge)
	at := project.Place{Group: true, Ref: project.RefTo(g.ID)}
	f := listing.Filter{CreatedAt: [2]*time.Time{&since, nil}, Live: true}
	var n int64
	switch what {
	case NewIssues:
		var c plan.Counts
		c, err = s.Plan.CountIssues(ctx, by, &at, plan.IssueFilter{Filter: f})
		n = c.All
	case NewRequests:
		var c plan.Counts
		c, err = s.Total(ctx, by, &at, Filter{Filter: f})
		n = c.All
	case NewMembers:
		n, err = s.Projects.CountNewMembers(ctx, g, since, activityMost)
	}
	if err != nil {
		return 0, fmt.Errorf("activity of group %d: %w", g.ID, err)
	}
	return min(n, activityMost), nil
}
