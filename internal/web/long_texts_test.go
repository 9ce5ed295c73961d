package web_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

// maxPage is the maximum size of a page in bytes, whatever users wrote.
const maxPage = 10 << 20

// TestPageOfLongTexts opens pages with many texts of a megabyte: an issue with
// notes, lists, and a history of commits with long messages. Pages show the
// beginning of each text with a link to the whole text.
func TestPageOfLongTexts(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		id := newProject(t, s, ada, "p", "public")
		at := fmt.Sprintf("/projects/%d/issues", id)
		s.Check(t, apptest.Call{Do: "POST " + at, As: ada, JSON: `{"title":"long"}`, Status: 201})
		var note struct{ ID int64 }
		const notes = 49
		for range notes {
			s.Check(t, apptest.Call{Do: "POST " + at + "/1/notes", As: ada, JSON: `{"body":"note"}`, Status: 201}).JSON(t, &note)
		}
		// In HTML, each of these characters takes several bytes.
		text := strings.Repeat("<b>&amp; word\n", 70_000)
		for _, change := range []string{`UPDATE issues SET description = ?`, `UPDATE notes SET body = ?`} {
			if _, err := s.DB.ExecContext(t.Context(), change, text); err != nil {
				t.Fatal(err)
			}
		}
		message := "Long\n\n" + strings.Repeat("message ", 120_000)
		var commits []gittest.Commit
		for i := range 10 {
			commits = append(commits, gittest.Commit{Message: message, Changes: change("a.txt", fmt.Sprint(i))})
		}
		s.Repository(t, id, commits...)
		guest := newBrowser(t, s)
		cut := "Only its beginning is shown, as plain text."
		guest.get("/ada/p/-/issues/1").want(200, cut, fmt.Sprintf(`href="/api/v4/projects/%d/issues/1"`, id),
			fmt.Sprintf(`href="/api/v4/projects/%d/issues/1/notes/%d"`, id, note.ID)).under(maxPage)
		guest.get("/ada/p/-/issues").want(200, "long").under(maxPage)
		guest.get("/ada/p/-/commits/main").want(200, "Long", "The message was truncated. Its size is 938 KiB.").under(maxPage)
		guest.get("/ada/p/-/commit/main").want(200, "Long", "The message was truncated. Its size is 938 KiB.").under(maxPage)
		// A page with many short texts shows all of them.
		short := strings.Repeat("short *text*\n", 200)
		if _, err := s.DB.ExecContext(t.Context(), `UPDATE notes SET body = ?`, short); err != nil {
			t.Fatal(err)
		}
		page := guest.get("/ada/p/-/issues/1").want(200, "short <em>text</em>")
		if n := strings.Count(page.body, "<em>text</em>"); n != notes*200 {
			t.Errorf("%d texts", n)
		}
	})
}

// TestPageOfManyNotes opens an issue with a thread of thousands of notes.
func TestPageOfManyNotes(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		id := newProject(t, s, ada, "p", "public")
		at := fmt.Sprintf("/projects/%d/issues", id)
		s.Check(t, apptest.Call{Do: "POST " + at, As: ada, JSON: `{"title":"talk"}`, Status: 201})
		var thread struct{ ID string }
		s.Check(t, apptest.Call{Do: "POST " + at + "/1/discussions", As: ada, JSON: `{"body":"first"}`, Status: 201}).JSON(t, &thread)
		s.Check(t, apptest.Call{Do: "POST " + at + "/1/discussions", As: ada, JSON: `{"body":"second"}`, Status: 201})
		for i := range 20 {
			s.Check(t, apptest.Call{Do: fmt.Sprintf("POST %s/1/discussions/%s/notes", at, thread.ID), As: ada, JSON: fmt.Sprintf(`{"body":"reply %d"}`, i), Status: 201})
		}
		for range 6 { // doubles the notes
			_, err := s.DB.ExecContext(t.Context(), `
				INSERT INTO notes (project_id, noteable_type, noteable_id, noteable_iid, discussion_id, type, author_id, system, internal, position, created_at, updated_at, body)
				SELECT project_id, noteable_type, noteable_id, noteable_iid, discussion_id, type, author_id, system, internal, position, created_at, updated_at, body FROM notes
				WHERE discussion_id = ?`, thread.ID)
			if err != nil {
				t.Fatal(err)
			}
		}
		const all, most = 21 * 64, 1000
		page := newBrowser(t, s).get("/ada/p/-/issues/1").want(200, "second", fmt.Sprintf("%d more comments", all-most+1), fmt.Sprintf(`href="/api/v4/projects/%d/issues/1/discussions/%s"`, id, thread.ID))
		if n := strings.Count(page.body, `class="said`); n != most {
			t.Errorf("%d notes, want %d", n, most)
		}
	})
}
