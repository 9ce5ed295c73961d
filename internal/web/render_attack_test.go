package web_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
	"svc/internal/waittest"
)

// TestQuadraticRendering opens a file, an issue and a note that would take minutes
// to highlight or render: they are shown as plain text, and rendering is tried once.
func TestQuadraticRendering(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		id := newProject(t, s, ada, "p", "public")
		code, text := strings.Repeat("(", 200<<10)+"\n<b>\n", strings.Repeat("[a](", 50_000)
		s.Repository(t, id, gittest.Commit{Changes: change("a.py", code, "b.py", code+"\n")})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/issues", id), As: ada, JSON: fmt.Sprintf(`{"title":"x","description":%q}`, text), Status: 201})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/issues/1/notes", id), As: ada, JSON: fmt.Sprintf(`{"body":%q}`, text), Status: 201})
		guest := newBrowser(t, s)
		before := s.Markup.Stats()
		for range 2 {
			guest.get("/ada/p/-/blob/main/a.py").want(200, `id="L2"`, "((((", "&lt;b&gt;").not(`<span class="p">`, `<span class="o">`, `</span>(`)
		}
		if now := s.Markup.Stats(); now.Costly-before.Costly != 1 || now.Runs-before.Runs != 1 {
			t.Errorf("the file: %+v, before %+v", now, before)
		}
		before = s.Markup.Stats()
		for range 2 {
			guest.get("/ada/p/-/issues/1").want(200, "<pre>[a]([a](")
		}
		var made struct{ HTML string }
		s.Check(t, apptest.Call{Do: "POST /markdown", As: ada, JSON: fmt.Sprintf(`{"text":%q,"gfm":true,"project":"ada/p"}`, text), Status: 201}).JSON(t, &made)
		if !strings.HasPrefix(made.HTML, "<pre>[a](") {
			t.Errorf("the API gives %.100q", made.HTML)
		}
		if now := s.Markup.Stats(); now.Costly-before.Costly > 2 { // one for the description, with task boxes, and one for the note
			t.Errorf("the text: %+v, before %+v", now, before)
		}
		// The work does not continue after the request.
		ctx, leave := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, "GET", s.URL+"/ada/p/-/blob/main/b.py", nil)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if answer, err := http.DefaultClient.Do(r); err == nil {
				_ = answer.Body.Close()
			}
		}()
		runs := s.Markup.Stats().Runs
		waittest.For(t, "the rendering", func() bool { return s.Markup.Stats().Runs > runs || s.Markup.Stats().Active > 0 })
		leave()
		waittest.Receive(t, "the client", done)
		waittest.For(t, "the end of the work", func() bool { now := s.Markup.Stats(); return now.Active == 0 && now.Held == 0 })
	})
}

// TestLongLanguageNames has visitors open texts whose languages have names of 200 KB
// each: of a block of code, of a block in highlighted Markdown, and of a file by
// its ending. They are shown as usual, because a lexer is not sought in all patterns.
func TestLongLanguageNames(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		id := newProject(t, s, ada, "p", "public")
		long, ending := strings.Repeat("a", 200<<10), "x."+strings.Repeat("b", 2000)
		s.Repository(t, id, gittest.Commit{Changes: change("a.md", "```"+long+"\nplain\n```\n", ending, "plain <b>\n")})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/issues", id), As: ada, JSON: fmt.Sprintf(`{"title":"x","description":%q}`, "~~~ "+long+"\nplain\n~~~\n"), Status: 201})
		guest := newBrowser(t, s)
		before := s.Markup.Stats()
		guest.get("/ada/p/-/issues/1").want(200, "<code>plain")
		guest.get("/ada/p/-/blob/main/a.md?plain=1").want(200, "plain")
		guest.get("/ada/p/-/blob/main/"+ending).want(200, "plain &lt;b&gt;")
		if now := s.Markup.Stats(); now.Costly != before.Costly {
			t.Errorf("%+v, before %+v", now, before)
		}
	})
}
