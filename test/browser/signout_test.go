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

// TestSignOut signs out in one tab. The session must be invalid in other tabs, in
// cached pages, in the API, and for a copy of the cookie. The session of another
// user is not affected.
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
		t.Fatalf("a request with the cookie returned %d: %s", status, body)
	}
	first.visit("/-/user_settings/emails")
	first.do(chromedp.Click(`summary[aria-label="Your account"]`, chromedp.ByQuery))
	first.press(`form[action="/users/sign_out"] button`)
	first.wantText("You signed out.")
	if first.session() != "" {
		t.Error("the browser still has the cookie")
	}

	// The other tab still shows its page, but its form has no effect.
	second.fill("#name", "Somebody else")
	second.press(`form[action="/-/user_settings/profile"] button`)
	if text := second.text("main"); !strings.Contains(text, "Sign in") && !strings.Contains(text, "has expired") {
		t.Errorf("the form of the other tab had an effect: %s", text)
	}
	second.visit("/-/user_settings/profile")
	second.wantPath("/users/sign_in")
	// Back shows no cached page.
	first.do(chromedp.NavigateBack(), chromedp.WaitReady("main", chromedp.ByQuery))
	first.do(chromedp.Reload(), chromedp.WaitReady("main", chromedp.ByQuery))
	first.wantPath("/users/sign_in")
	// A copy of the cookie is invalid, too.
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

// session returns the value of the session cookie, or an empty string.
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

// with requests a path with a session cookie, and follows no redirect.
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
