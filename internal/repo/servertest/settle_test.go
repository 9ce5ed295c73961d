package servertest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
	"svc/internal/git/gittest"
)

// TestRecover starts after a server that was killed during pushes: with rows of pushes, refs
// that have moved or not, and locks.
func TestRecover(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"name":"p","initialize_with_readme":true}`, Status: 201})
		var project int64
		if err := s.DB.QueryRowContext(t.Context(), `SELECT id FROM projects WHERE full_path = 'alice/p'`).Scan(&project); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(s.Config.Storages["default"], "projects", fmt.Sprintf("%02x", project%256), fmt.Sprintf("%d.git", project))
		tip := gittest.Run(t, dir, "rev-parse", "refs/heads/main")
		gittest.Run(t, dir, "update-ref", "refs/heads/moved", tip)
		for _, branch := range []string{"moved", "not-moved"} {
			who, err := json.Marshal(map[string]any{"ID": id, "Username": "alice"})
			if err != nil {
				t.Fatal(err)
			}
			what := fmt.Sprintf(`{"Changes":[{"Ref":"refs/heads/%s","Old":"0000000000000000000000000000000000000000","New":%q}]}`, branch, tip)
			if _, err := s.DB.ExecContext(t.Context(), `INSERT INTO pushes (project_id, actor, push, created_at) VALUES (?, ?, ?, ?)`,
				project, string(who), what, s.Clock.Now()); err != nil {
				t.Fatal(err)
			}
		}
		locks := []string{"HEAD.lock", "refs/heads/not-moved.lock"}
		for _, lock := range locks {
			if err := os.WriteFile(filepath.Join(dir, lock), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // the second time there is nothing to do
			if err := s.Repos.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, lock := range locks {
			if _, err := os.Stat(filepath.Join(dir, lock)); err == nil {
				t.Errorf("%s is still there", lock)
			}
		}
		for branch, want := range map[string]int{"moved": 1, "not-moved": 0} {
			var n int
			if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM activity_events WHERE push LIKE ?`, `%"`+branch+`"%`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			if n != want {
				t.Errorf("%s is recorded %d times, want %d", branch, n, want)
			}
		}
		var left int
		if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM pushes`).Scan(&left); err != nil || left != 0 {
			t.Errorf("%d pushes are left: %v", left, err)
		}
	})
}

// TestPushRecordedTwice has the row of a node that was killed before it moved the refs, while the
// client has sent the same push again to another node: the push is recorded once. Refs that had
// moved are recorded once as well.
func TestPushRecordedTwice(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		var made struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"name":"p","initialize_with_readme":true}`, Status: 201}).JSON(t, &made)
		at := fmt.Sprintf("/projects/%d/repository", made.ID)
		s.Check(t, apptest.Call{Do: "POST " + at + "/commits", As: alice, Status: 201,
			JSON: `{"branch":"main","commit_message":"CI","actions":[{"action":"create","file_path":".gitlab-ci.yml","content":"a: {script: [x]}"}]}`})
		dir := filepath.Join(s.Config.Storages["default"], "projects", fmt.Sprintf("%02x", made.ID%256), fmt.Sprintf("%d.git", made.ID))
		tip := gittest.Run(t, dir, "rev-parse", "refs/heads/main")
		const none = "0000000000000000000000000000000000000000"
		row := func(branch, before, after, mark string) {
			t.Helper()
			who, err := json.Marshal(map[string]any{"ID": id, "Username": "alice"})
			if err != nil {
				t.Fatal(err)
			}
			what := fmt.Sprintf(`{"Changes":[{"Ref":"refs/heads/%s","Old":%q,"New":%q}],"Mark":%q}`, branch, before, after, mark)
			if _, err := s.DB.ExecContext(t.Context(), `INSERT INTO pushes (project_id, actor, push, created_at) VALUES (?, ?, ?, ?)`,
				made.ID, string(who), what, s.Clock.Now()); err != nil {
				t.Fatal(err)
			}
		}
		create := func(branch string) {
			t.Helper()
			s.Check(t, apptest.Call{Do: "POST " + at + "/branches", As: alice, JSON: fmt.Sprintf(`{"branch":%q,"ref":"main"}`, branch), Status: 201})
		}
		// The node was killed before a ref moved, and the push was sent again.
		row("again", none, tip, "MARKAGAIN")
		create("again")
		// The node was killed after git had written the reflog, but before the ref moved.
		row("logged", none, tip, "MARKLOGGED")
		gittest.Run(t, dir, "-c", "core.logAllRefUpdates=always", "update-ref", "-m", "push MARKLOGGED", "refs/heads/logged", tip)
		if err := os.Remove(filepath.Join(dir, "refs/heads/logged")); err != nil {
			t.Fatal(err)
		}
		create("logged")
		// The node was killed after the ref had moved; one ref has moved on since.
		for _, branch := range []string{"moved", "gone-on"} {
			row(branch, none, tip, "MARK"+branch)
			gittest.Run(t, dir, "-c", "core.logAllRefUpdates=always", "update-ref", "-m", "push MARK"+branch, "refs/heads/"+branch, tip)
		}
		gittest.Run(t, dir, "-c", "core.logAllRefUpdates=always", "update-ref", "-m", "push OTHER", "refs/heads/gone-on", "main~1")
		// The node was killed before a branch was deleted, and the push was sent again; another
		// branch is gone.
		create("deleted")
		create("vanished")
		row("deleted", tip, none, "MARKDELETED")
		s.Check(t, apptest.Call{Do: "DELETE " + at + "/branches/deleted", As: alice, Status: 204})
		row("vanished", tip, none, "MARKREMOVED")
		gittest.Run(t, dir, "update-ref", "-d", "refs/heads/vanished")
		// The node was killed before a branch was deleted, which others then moved and deleted.
		create("replaced")
		row("replaced", tip, none, "MARKREPLACED")
		s.Check(t, apptest.Call{Do: "POST " + at + "/commits", As: alice, Status: 201,
			JSON: `{"branch":"replaced","commit_message":"more","actions":[{"action":"create","file_path":"more","content":"x"}]}`})
		s.Check(t, apptest.Call{Do: "DELETE " + at + "/branches/replaced", As: alice, Status: 204})
		// The node was killed before a branch was deleted, which still exists.
		create("stays")
		row("stays", tip, none, "MARKSTAYS")

		for range 2 {
			if err := s.Repos.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.Settled(t)
		}
		// A branch that was created and deleted has two events.
		for branch, want := range map[string]int{"again": 1, "logged": 1, "moved": 1, "gone-on": 1, "deleted": 2, "vanished": 2, "replaced": 3, "stays": 1} {
			var n int
			if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM activity_events WHERE push LIKE ?`, `%"`+branch+`"%`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			if n != want {
				t.Errorf("%s: %d events, want %d", branch, n, want)
			}
		}
		for _, branch := range []string{"again", "logged", "moved"} {
			var n int
			if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM pipelines WHERE ref = ?`, branch).Scan(&n); err != nil {
				t.Fatal(err)
			}
			if n != 1 {
				t.Errorf("%s: %d pipelines, want 1", branch, n)
			}
		}
		var left int
		if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM pushes`).Scan(&left); err != nil || left != 0 {
			t.Errorf("%d pushes are left: %v", left, err)
		}
	})
}

// TestSettlePushesOfDeadNode checks that the push of a node that no longer runs is recorded once
// all its refs have moved.
func TestSettlePushesOfDeadNode(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		var made struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"name":"p","initialize_with_readme":true}`, Status: 201}).JSON(t, &made)
		dir := filepath.Join(s.Config.Storages["default"], "projects", fmt.Sprintf("%02x", made.ID%256), fmt.Sprintf("%d.git", made.ID))
		tip := gittest.Run(t, dir, "rev-parse", "refs/heads/main")
		who, err := json.Marshal(map[string]any{"ID": id, "Username": "alice"})
		if err != nil {
			t.Fatal(err)
		}
		const none = "0000000000000000000000000000000000000000"
		row := func(node string, age time.Duration, branches ...string) {
			t.Helper()
			var changes []map[string]string
			for _, branch := range branches {
				changes = append(changes, map[string]string{"Ref": "refs/heads/" + branch, "Old": none, "New": tip})
			}
			what, err := json.Marshal(map[string]any{"Changes": changes})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.DB.ExecContext(t.Context(), `INSERT INTO pushes (project_id, actor, push, node, created_at) VALUES (?, ?, ?, ?, ?)`,
				made.ID, string(who), string(what), node, s.Clock.Now().Add(-age)); err != nil {
				t.Fatal(err)
			}
		}
		for _, branch := range []string{"dead", "half", "living", "young"} {
			gittest.Run(t, dir, "update-ref", "refs/heads/"+branch, tip)
		}
		row("gone", time.Minute, "dead")
		row("gone", time.Minute, "half", "not-moved")
		row("gone", -time.Hour, "young")
		row(s.Queue.Node(), time.Minute, "living")
		row("", time.Minute, "living") // of an earlier release
		for range 2 {
			if err := s.Repos.SettlePushes(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for branch, want := range map[string]int{"dead": 1, "half": 0, "young": 0, "living": 0} {
			var n int
			if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM activity_events WHERE push LIKE ?`, `%"`+branch+`"%`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			if n != want {
				t.Errorf("%s is recorded %d times, want %d", branch, n, want)
			}
		}
		var left int
		if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM pushes`).Scan(&left); err != nil || left != 4 {
			t.Errorf("%d pushes are left: %v", left, err)
		}
	})
}

// TestPushSettledByOtherNode has another node settle the push of a node that is frozen, before or
// after the refs have moved: it is refused, or what the other node has not recorded is recorded.
// On SQLite there is no other node.
func TestPushSettledByOtherNode(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.Postgres(t))
	p := newPlace(t, s, `,"initialize_with_readme":true`)
	s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/wikis", p.id), As: p.alice, JSON: `{"title":"home","content":"x"}`, Status: 201})
	code, wiki := newClone(t, s, p.alice, p.path), newClone(t, s, p.alice, p.path+".wiki")
	code.commit("a", "1", "a commit")
	wiki.commit("page.md", "text", "a page")
	settle := func(when, also string, run func()) {
		t.Helper()
		exec := func(query string) {
			t.Helper()
			if _, err := s.DB.ExecContext(t.Context(), query); err != nil {
				t.Fatal(err)
			}
		}
		for _, table := range []string{"pushes", "annex_pushes"} {
			do := `DELETE FROM ` + table + ` WHERE id = NEW.id;`
			if table == "pushes" {
				do += also
			}
			exec(`CREATE FUNCTION settle_` + table + `() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN ` + strings.ReplaceAll(do, "'", "''") + ` RETURN NULL; END'`)
			exec(`CREATE TRIGGER settle_` + table + ` AFTER ` + when + ` ON ` + table + ` FOR EACH ROW EXECUTE FUNCTION settle_` + table + `()`)
		}
		run()
		for _, table := range []string{"pushes", "annex_pushes"} {
			exec(`DROP FUNCTION settle_` + table + `() CASCADE`)
		}
	}
	events := func(branch string) (n int) {
		t.Helper()
		if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM activity_events WHERE push LIKE ?`, `%"`+branch+`"%`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	settle("INSERT", "", func() {
		code.push("Please push again", "HEAD:refs/heads/one")
		wiki.push("Please push again", "HEAD:main")
	})
	s.Table(t, []apptest.Call{
		{Name: "refused", Do: fmt.Sprintf("GET /projects/%d/repository/branches/one", p.id), As: p.alice, Status: 404},
		{Name: "no page", Do: fmt.Sprintf("GET /projects/%d/wikis/page", p.id), As: p.alice, Status: 404},
	})
	tip := gittest.Run(t, code.dir, "rev-parse", "HEAD")
	one := fmt.Sprintf(`[{"Ref":"refs/heads/one","Old":"0000000000000000000000000000000000000000","New":%q}]`, tip)
	settle("UPDATE", `INSERT INTO recorded_pushes (project_id, push_id, changes, created_at) VALUES (NEW.project_id, NEW.id, '`+one+`', NEW.created_at);`, func() {
		code.push("", "HEAD:refs/heads/one", "HEAD:refs/heads/two")
		wiki.push("", "HEAD:main")
	})
	s.Settled(t)
	if n := events("one"); n != 0 {
		t.Errorf("%d events of what the other node has recorded", n)
	}
	if n := events("two"); n != 1 {
		t.Errorf("%d events of what it has not recorded", n)
	}
	s.Check(t, apptest.Call{Name: "the page", Do: fmt.Sprintf("GET /projects/%d/wikis/page", p.id), As: p.alice, Status: 200})
	var wikis int
	if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM recorded_pushes WHERE annex_id IS NOT NULL AND push_id <> 0`).Scan(&wikis); err != nil || wikis != 2 {
		t.Errorf("%d recorded pushes to the wiki, %v", wikis, err)
	}
}
