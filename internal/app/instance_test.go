package app_test

import (
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/db"
	"svc/internal/errs"
)

// TestInstance checks that the statistics of the instance are counted, for
// administrators only.
func TestInstance(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, token := s.User(t, "ada")
		s.Check(t, apptest.Call{Do: "POST /projects", As: token, Form: map[string][]string{"name": {"P"}}, Status: 201})
		s.Check(t, apptest.Call{Do: "POST /groups", As: token, Form: map[string][]string{"name": {"G"}, "path": {"g"}}, Status: 201})
		c, err := s.Instance.Counts(t.Context(), actor.System())
		if err != nil || c.Users.N != 2 || c.Projects.N != 1 || c.Groups.N != 1 || c.Archived.N != 0 || c.Users.Over || c.Database < 1<<10 {
			t.Errorf("%+v, %v", c, err)
		}
		list, err := s.Instance.StorageList(t.Context(), actor.System())
		if err != nil || len(list) != 1 || list[0].Name != "default" || list[0].Projects != 1 || list[0].Locked {
			t.Errorf("%+v, %v", list, err)
		}
		for name, err := range map[string]error{
			"counts":   call(s.Instance.Counts(t.Context(), actor.Actor{ID: id})),
			"work":     call(s.Instance.Work(t.Context(), actor.Actor{ID: id}, "", db.Paging{Limit: 1})),
			"storages": call(s.Instance.StorageList(t.Context(), actor.Actor{ID: id})),
			"states":   call(s.Instance.WorkCounts(t.Context(), actor.Actor{ID: id})),
			"retry":    s.Instance.RetryWork(t.Context(), actor.Actor{ID: id}, 1),
			"drop":     s.Instance.DropWork(t.Context(), actor.Actor{ID: id}, 1),
		} {
			if !errs.Is(err, errs.KindForbidden) {
				t.Errorf("%s for another user: %v", name, err)
			}
		}
	})
}

func call[T any](_ T, err error) error { return err }
