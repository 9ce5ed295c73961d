package api_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// TestMovedTexts moves an issue with uploaded files, references and links. The files
// are copied, and the texts still refer to the objects of the old project.
func TestMovedTexts(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		s.Check(t, apptest.Call{Do: "PUT /application/settings?deletion_adjourned_period=0", As: root, Status: 200})
		from := newProject(t, s, alice, "from", `,"initialize_with_readme":true`)
		to := newProject(t, s, alice, "to", "")
		issues := fmt.Sprintf("/projects/%d/issues", from)
		var described, commented, kept struct{ URL string }
		uploadFile(t, s, alice, from, "a log.png", "described").JSON(t, &described)
		uploadFile(t, s, alice, from, "note.txt", "commented").JSON(t, &commented)
		uploadFile(t, s, alice, from, "other.txt", "kept").JSON(t, &kept)
		label := made(t, s, alice, fmt.Sprintf("POST /projects/%d/labels", from), `{"name":"two words","color":"red"}`)
		s.Check(t, apptest.Call{Do: "POST " + issues, As: alice, JSON: `{"title":"First"}`, Status: 201})
		request := proposed(t, s, alice, from, "work", "")
		commit := commitTo(t, s, alice, from, "work", "b.txt", "b\n", "Add b")
		text := fmt.Sprintf("![a log](%s) #1, from#1, alice/from#1, !1, #99, %s and 1234567 ~%d `#1` @alice", described.URL, commit[:10], label)
		s.Check(t, apptest.Call{Do: "POST " + issues, As: alice, JSON: fmt.Sprintf(`{"title":"Second","description":%q}`, text), Status: 201})
		for _, body := range []string{"[note](" + commented.URL + ") of #1", "plain", "[note](" + commented.URL + ") of #1"} {
			s.Check(t, apptest.Call{Do: "POST " + issues + "/2/notes", As: alice, JSON: fmt.Sprintf(`{"body":%q}`, body), Status: 201})
		}
		s.Check(t, apptest.Call{Do: "POST " + issues + "/2/links", As: alice, JSON: fmt.Sprintf(`{"target_project_id":%d,"target_issue_iid":1}`, from), Status: 201})

		type issue struct {
			ID, IID     int64
			Description string
		}
		var cloned, moved issue
		s.Check(t, apptest.Call{Do: "POST " + issues + "/2/clone", As: alice, JSON: fmt.Sprintf(`{"to_project_id":%d}`, from), Status: 201, Want: fmt.Sprintf(`{"description":%q}`, text)})
		s.Check(t, apptest.Call{Do: "POST " + issues + "/2/clone", As: alice, JSON: fmt.Sprintf(`{"to_project_id":%d,"with_notes":true}`, to), Status: 201}).JSON(t, &cloned)
		s.Check(t, apptest.Call{Do: "POST " + issues + "/2/move", As: alice, JSON: fmt.Sprintf(`{"to_project_id":%d}`, to), Status: 201}).JSON(t, &moved)
		s.Table(t, []apptest.Call{
			{Name: "links move", Do: fmt.Sprintf("GET /projects/%d/issues/%d/links", to, moved.IID), As: alice, Status: 200, Want: `[{"title":"First"}]`},
			{Name: "from the issue", Do: "GET " + issues + "/2/links", As: alice, Status: 200, Want: `[]`},
			{Name: "at the other end", Do: "GET " + issues + "/1/links", As: alice, Status: 200, Want: fmt.Sprintf(`[{"id":%d}]`, moved.ID)},
			{Name: "clones have none", Do: fmt.Sprintf("GET /projects/%d/issues/%d/links", to, cloned.IID), As: alice, Status: 200, Want: `[]`},
			{Name: "the old text", Do: "GET " + issues + "/2", As: alice, Status: 200, Want: fmt.Sprintf(`{"description":%q}`, text)},
		})
		const secret = 32
		for _, i := range []issue{cloned, moved} {
			path := i.Description[strings.Index(i.Description, "/uploads/"):][:len("/uploads/")+secret]
			want := strings.NewReplacer(described.URL[:len(path)], path, " #1,", " alice/from#1,", "from#1, alice", "alice/from#1, alice", "!1", "alice/from!1",
				commit[:10], "alice/from@"+commit[:10], fmt.Sprintf("~%d", label), `~"two words"`).Replace(text)
			if i.Description != want {
				t.Errorf("description %q, want %q", i.Description, want)
			}
			var shown struct{ HTML string }
			s.Check(t, apptest.Call{Do: "POST /markdown", As: alice, JSON: fmt.Sprintf(`{"text":%q,"gfm":true,"project":"alice/to"}`, i.Description), Status: 201}).JSON(t, &shown)
			for _, link := range []string{`href="/alice/from/-/issues/1"`, `href="/alice/from/-/merge_requests/` + request[strings.LastIndex(request, "/")+1:] + `"`, `href="/alice/from/-/commit/` + commit + `"`} {
				if !strings.Contains(shown.HTML, link) {
					t.Errorf("no %s in %s", link, shown.HTML)
				}
			}
			var notes []struct{ Body string }
			s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/issues/%d/notes?sort=asc&activity_filter=only_comments", to, i.IID), As: alice, Status: 200}).JSON(t, &notes)
			if len(notes) != 3 || notes[1].Body != "plain" || notes[0].Body != notes[2].Body || !strings.HasSuffix(notes[0].Body, "note.txt) of alice/from#1") {
				t.Fatalf("notes %q", notes)
			}
		}
		var files []struct{ Filename string }
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/uploads", to), As: alice, Status: 200}).JSON(t, &files)
		if len(files) != 4 {
			t.Errorf("files %v", files)
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /projects/%d", from), As: alice, Status: 202})
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, i := range []issue{cloned, moved} {
			path := i.Description[strings.Index(i.Description, "/uploads/"):]
			s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d%s", to, path[:strings.Index(path, ")")]), As: alice, Status: 200, Text: "described"})
		}
	})
}
