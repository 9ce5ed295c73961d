package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// TestStreamEndsWhenReaderIsBlocked opens event streams of a private project and
// revokes the access of the reader: the streams end, and send no event that happens
// later.
func TestStreamEndsWhenReaderIsBlocked(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st := newCIProject(t, s, "a:\n  script: [x]\n")
		st.api("PUT /projects/%d", 200, url.Values{"visibility": {"private"}})
		st.pipeline("dev")
		job := st.take()
		written := 0
		write := func(text string) {
			st.write(job, written, text+"\n")
			written += len(text) + 1
		}
		write("before")
		trace := fmt.Sprintf("/api/v4/projects/%d/jobs/%d/trace", st.project, job.ID)
		byToken := func(b *browser, token string) *listener {
			return b.listen(trace, "Accept", "text/event-stream", "Private-Token", token)
		}
		control := byToken(newBrowser(t, s), st.owner)

		for _, c := range []struct {
			name            string
			session, tokens bool // whether the streams end
			cut             func(b *browser, id int64, token string)
		}{
			{"blocked", true, true, func(_ *browser, id int64, _ string) {
				s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /users/%d/block", id), As: apptest.RootToken, Status: 201})
			}},
			{"tokenrevoked", false, true, func(_ *browser, _ int64, token string) {
				s.Check(t, apptest.Call{Do: "DELETE /personal_access_tokens/self", As: token, Status: 204})
			}},
			{"signedout", true, false, func(b *browser, _ int64, _ string) {
				b.submit("/", "/users/sign_out").leads("/users/sign_in")
			}},
			{"sessionrevoked", true, false, func(*browser, int64, string) {
				const at = "/-/user_settings/active_sessions"
				newBrowser(t, s).signIn("sessionrevoked", password).submit(at, at+"/revoke").leads(at)
			}},
			{"memberremoved", true, true, func(_ *browser, id int64, _ string) {
				st.api(fmt.Sprintf("DELETE /projects/%%d/members/%d", id), 204, nil)
			}},
		} {
			id, token := s.User(t, c.name)
			st.api("POST /projects/%d/members", 201, url.Values{"user_id": {fmt.Sprint(id)}, "access_level": {"30"}})
			b := newBrowser(t, s).signIn(c.name, password)
			streams := map[string]*listener{}
			if c.tokens {
				streams["log by token"] = byToken(b, token)
			}
			if c.session {
				streams["log by session"] = b.listen(trace, "Accept", "text/event-stream")
				streams["log of the page"] = b.listen(fmt.Sprintf("/ada/p/-/jobs/%d/log/events?total=0", job.ID))
			}
			for name, l := range streams {
				if event, data := l.next(); event != "log" || !strings.Contains(data, "before") {
					t.Fatalf("%s, %s: first comes %s %s", c.name, name, event, data)
				}
			}
			if c.session {
				streams["list of pipelines"] = b.listen("/ada/p/-/pipelines/events")
			}
			c.cut(b, id, token)
			write("after" + c.name)
			st.pipeline("dev")
			for name, l := range streams {
				for event, data := l.next(); event != ""; event, data = l.next() {
					if event == "changed" && name == "list of pipelines" || strings.Contains(data, "after"+c.name) {
						t.Errorf("%s, %s: later comes %s %s", c.name, name, event, data)
						l.stop()
					}
				}
				if l.ctx.Err() != nil {
					t.Errorf("%s, %s: the stream does not end", c.name, name)
				}
			}
			for event, data := control.next(); !strings.Contains(data, "after"+c.name); event, data = control.next() {
				if event == "" {
					t.Fatalf("%s: the stream of the owner has ended", c.name)
				}
			}
		}
	})
}

// TestStreamWithoutSession opens an event stream after the user has signed out: its
// script would take the sign-in page for a broken stream.
func TestStreamWithoutSession(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBrowser(t, s)
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/-/inbox", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/event-stream")
		if got := b.send(r); got.status != http.StatusUnauthorized || !strings.Contains(got.body, "Sign in first.") {
			t.Errorf("%d %s", got.status, got.body)
		}
		b.get("/-/inbox").leads("/users/sign_in?return_to=%2F-%2Finbox")
	})
}
