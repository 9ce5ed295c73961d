package browser

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// TestSignOut signs out in one tab: the session is dead in the others, in the
// pages that the browser kept, in the API, and for anyone who copied the
// cookie. What someone else has signed in to stays.
func TestSignOut(t *testing.T) {
	s, c := start(t), launch(t)
	s.user(t, "ada")
	first, elsewhere := c.open(t, s), c.open(t, s)
	first.signIn("ada", password)
	elsewhere.signIn("ada", password)
	second := c.openIn(t, s, first.profile)
	second.visit("/-/user_settings/profile")
	second.wantPath("/-/user_settings/profile")
	session := first.session()
	if status, body := s.with(t, session, "/api/v4/user"); status != 200 || !strings.Contains(body, `"ada"`) {
		t.Fatalf("the cookie is worth %d: %s", status, body)
	}
	first.visit("/-/user_settings/emails")
	first.do(chromedp.Click(`summary[aria-label="Your account"]`, chromedp.ByQuery))
	first.press(`form[action="/users/sign_out"] button`)
	first.wantText("You signed out.")
	if first.session() != "" {
		t.Error("the browser kept the cookie")
	}

	// The other tab still shows its page, whose form does nothing now.
	second.fill("#name", "Somebody else")
	second.press(`form[action="/-/user_settings/profile"] button`)
	if text := second.text("main"); !strings.Contains(text, "Sign in") && !strings.Contains(text, "has expired") {
		t.Errorf("the form of the other tab did something: %s", text)
	}
	second.visit("/-/user_settings/profile")
	second.wantPath("/users/sign_in")
	// Back shows nothing that was kept.
	first.do(chromedp.NavigateBack(), chromedp.WaitReady("main", chromedp.ByQuery))
	first.do(chromedp.Reload(), chromedp.WaitReady("main", chromedp.ByQuery))
	first.wantPath("/users/sign_in")
	// Neither does the cookie, for anyone who has it.
	for path, want := range map[string]int{"/api/v4/user": 401, "/-/user_settings/profile": 303, "/admin": 303} {
		if status, body := s.with(t, session, path); status != want {
			t.Errorf("%s with the old cookie: status %d, want %d: %s", path, status, want, body)
		}
	}
	elsewhere.visit("/-/user_settings/profile")
	elsewhere.wantPath("/-/user_settings/profile")
	if name := elsewhere.text("summary[aria-label='Your account']"); name != "A" {
		t.Errorf("the account shows %q", name)
	}
}

// session is the value of the cookie, empty without one.
func (b *tab) session() string {
	b.t.Helper()
	value := ""
	b.do(chromedp.ActionFunc(func(ctx context.Context) error {
		list, err := network.GetCookies().WithURLs([]string{b.s.url}).Do(ctx)
		for _, cookie := range list {
			if cookie.Name == "_svc_session" {
				value = cookie.Value
			}
		}
		return err
	}))
	return value
}

// with asks for a path with a session cookie, and follows no redirect.
func (s *server) with(t *testing.T, session, path string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: "_svc_session", Value: session})
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}
