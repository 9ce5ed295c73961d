package web_test

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/git"
	"svc/internal/git/gittest"
)

// TestNotText sends invalid text wherever it could reach the database.
func TestNotText(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		s.User(t, "ada")
		b := newBrowser(t, s).signIn("ada", password)
		for _, path := range []string{"/explore?search=%00", "/explore?search=%ff", "/explore?%ff=1", "/a/%ff", "/%00", "/ada/%00/-/tree/main", "/a%ff/b", "/groups/%ff/-/x"} {
			b.get(path).want(404)
			newBrowser(t, s).get(path).want(404)
		}
		for _, bad := range []string{"\xff", "a\x00b"} {
			b.submit("/-/user_settings/profile", "/-/user_settings/profile", "name", bad).want(422, "not valid UTF-8")
			b.submit("/-/user_settings/profile", "/-/user_settings/profile", bad, "x").want(422, "not valid UTF-8")
			b.submit("/groups/new", "/groups", "name", bad, "path", "x", "visibility", "public").want(422)
			newBrowser(t, s).submit("/users/sign_in", "/users/sign_in", "login", bad, "password", "x").want(422)
		}
		b.get("/explore?search=%C3%BC").want(200)
	})
}

// TestSlowHistory shows a directory whose history cannot be searched in time, and
// with the last commits when it can.
func TestSlowHistory(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		var made struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: ada, JSON: `{"path":"code","visibility":"public"}`, Status: 201}).JSON(t, &made)
		r := s.Repository(t, made.ID, gittest.Commit{Message: "The only one", Changes: []gittest.Change{{Path: "dir/file.txt", Content: "x"}}})
		engine, err := git.New(git.Deps{Limits: git.Limits{Read: 300 * time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(engine.Close)
		s.Repos.Git = engine
		// The first read of the history blocks on this file.
		block := filepath.Join(r.Path, "shallow")
		if err := syscall.Mkfifo(block, 0o600); err != nil {
			t.Fatal(err)
		}
		guest := newBrowser(t, s)
		const page = "/ada/code/-/tree/main/dir"
		guest.get(page).want(200, "file.txt").not("The only one")
		if err := syscall.Unlink(block); err != nil {
			t.Fatal(err)
		}
		s.Repos.Git = s.Git
		guest.get(page).want(200, "file.txt", `<td class="what`)
	})
}
