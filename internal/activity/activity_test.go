package activity_test

import (
	"fmt"
	"testing"
	"time"

	"svc/internal/activity"
	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/db"
	"svc/internal/project"
)

// record writes a number of events of alice in a project.
func record(t *testing.T, s *apptest.Server, author, in int64, n int, at time.Time) {
	t.Helper()
	err := s.DB.Tx(t.Context(), func(tx *db.Tx) error {
		for i := range n {
			e := activity.Event{ProjectID: &in, AuthorID: author, Action: activity.Pushed, Audience: activity.CodeReaders, CreatedAt: at,
				Push: &activity.Push{Ref: fmt.Sprint(i)}}
			if err := activity.Record(t.Context(), tx, e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRetention(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, _ := s.User(t, "alice")
		by := actor.Actor{ID: id}
		p, err := s.Projects.Create(t.Context(), by, project.NewProject{Path: "p"})
		if err != nil {
			t.Fatal(err)
		}
		now := s.Clock.Now()
		record(t, s, id, p.ID, 1100, now.AddDate(-3, 0, -1))
		record(t, s, id, p.ID, 2, now.AddDate(-3, 0, 1))
		if err := s.Activity.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
		page, err := s.Activity.Own(t.Context(), by, activity.Filter{}, db.Paging{Limit: 10, Totals: true})
		if err != nil || page.Total != 3 { // including the event of the project
			t.Errorf("got %d events, %v; want 3", page.Total, err)
		}
	})
}

// TestManyProjects reads the same pages for few projects, whose lists are merged,
// and for many.
func TestManyProjects(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, _ := s.User(t, "alice")
		by := actor.Actor{ID: id}
		at := s.Clock.Now()
		for i := range activity.MaxLanes + 2 {
			p, err := s.Projects.Create(t.Context(), by, project.NewProject{Path: fmt.Sprintf("p%d", i)})
			if err != nil {
				t.Fatal(err)
			}
			at = at.Add(time.Second)
			record(t, s, id, p.ID, 1, at)
			if i != 5 && i != activity.MaxLanes+1 {
				continue
			}
			for name, read := range map[string]func(f activity.Filter, p db.Paging) (db.Page[*activity.Event], error){
				"own": func(f activity.Filter, p db.Paging) (db.Page[*activity.Event], error) {
					return s.Activity.Own(t.Context(), by, f, p)
				},
				"memberships": func(f activity.Filter, p db.Paging) (db.Page[*activity.Event], error) {
					return s.Activity.OfMemberships(t.Context(), by, f, p)
				},
			} {
				page, err := read(activity.Filter{Action: activity.Pushed}, db.Paging{Limit: 2, Offset: 1, Totals: true})
				if err != nil || len(page.Items) != 2 || page.Total != i+1 {
					t.Fatalf("%s of %d projects: %d of %d, %v", name, i+1, len(page.Items), page.Total, err)
				}
				if first := page.Items[0]; *first.ProjectID >= p.ID || !first.CreatedAt.Before(at) || !first.CreatedAt.After(page.Items[1].CreatedAt) {
					t.Errorf("%s of %d projects: the second event is of project %d at %v", name, i+1, *first.ProjectID, first.CreatedAt)
				}
			}
		}
	})
}
