package web_test

import (
	"fmt"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
)

// TestActivity visits pages on consecutive days and checks which of them count as
// activity.
func TestActivity(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t))
	id, token := s.User(t, "ada")
	s.Check(t, apptest.Call{Do: "POST /projects", As: token, JSON: `{"path":"engine"}`, Status: 201})
	b := newBrowser(t, s)
	b.submit("/users/sign_in", "/users/sign_in", "login", "ada", "password", password, "remember_me", "1").leads("/")
	for _, page := range []struct {
		path  string
		count bool
	}{
		{"/-/user_settings/profile", false}, {"/explore", false}, {"/ada", false}, {"/", true}, {"/dashboard/groups", true},
		{"/ada/engine", true}, {"/ada/engine/-/tree/main", true},
	} {
		s.Clock.Move(24 * time.Hour)
		b.get(page.path)
		var u struct {
			Day string    `json:"last_activity_on"`
			At  time.Time `json:"current_sign_in_at"`
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /users/%d", id), As: apptest.RootToken, Status: 200}).JSON(t, &u)
		today := s.Clock.Now().Format(time.DateOnly)
		if got := u.Day == today; got != page.count {
			t.Errorf("%s: active on %s, today is %s", page.path, u.Day, today)
		}
		if page.count && u.At.Format(time.DateOnly) != today {
			t.Errorf("%s: signed in at %v", page.path, u.At)
		}
	}
}
