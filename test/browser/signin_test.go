package browser

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/pquerna/otp/totp"
)

// TestAccount signs up and uses an account. Each step depends on the previous one.
func TestAccount(t *testing.T) {
	s, c := start(t), launch(t)
	s.user(t, "ada")
	b := c.open(t, s)

	step(t, "first sign-in", func(t *testing.T) {
		b.t = t
		b.visit("/")
		b.wantPath("/explore")
		b.visit("/projects/new")
		b.wantPath("/users/sign_in")
		b.fill("#login", "ada")
		b.fill("#password", "not it")
		b.press("main form button")
		b.wantText("Invalid login or password.")
		b.fill("#password", password)
		b.press("main form button")
		b.wantPath("/projects/new") // the page that was requested before the sign-in
		b.visit("/")
		b.wantText("Create a project")
	})

	step(t, "a project", func(t *testing.T) {
		b.t = t
		b.visit("/projects/new")
		b.fill("#name", "Analytical Engine")
		b.do(chromedp.Poll(`document.querySelector("#path").value === "analytical-engine"`, nil))
		b.press("main form button")
		b.wantPath("/ada/analytical-engine")
		b.wantText("README.md")
		b.press("main aside form button")
		b.wantText("Unstar")
	})

	secret := ""
	step(t, "two-factor enrolment", func(t *testing.T) {
		b.t = t
		b.visit("/-/user_settings/two_factor")
		b.press("main section form button")
		secret = strings.ReplaceAll(b.text("#otp-secret"), " ", "")
		b.fill("#code", "000000")
		b.press("main section form button")
		b.wantText("was wrong")
		secret = strings.ReplaceAll(b.text("#otp-secret"), " ", "")
		b.fill("#code", code(t, secret))
		b.press("main section form button")
		b.wantText("Your recovery codes")
	})
	recovery := strings.Fields(b.text("#codes"))
	if len(recovery) != 10 {
		t.Fatalf("%d recovery codes, want 10", len(recovery))
	}

	other := c.open(t, s)
	step(t, "two-factor use", func(t *testing.T) {
		other.t = t
		other.signIn("ada", password)
		other.wantPath("/users/sign_in/code")
		other.fill("#code", "123456")
		other.press("main form button")
		other.wantText("Invalid two-factor code")
		other.fill("#code", recovery[0])
		other.press("main form button")
		other.wantPath("/")

		third := c.open(t, s)
		third.signIn("ada", password)
		third.fill("#code", recovery[0]) // it can be used once
		third.press("main form button")
		third.wantText("Invalid two-factor code")
		third.fill("#code", codeAfter(t, secret))
		third.press("main form button")
		third.wantPath("/")
	})

	step(t, "sessions", func(t *testing.T) {
		b.t = t
		b.visit("/-/user_settings/active_sessions")
		b.wantText("This session")
		b.do(chromedp.Click(`.top form button`, chromedp.ByQuery), chromedp.WaitVisible("dialog[open]", chromedp.ByQuery))
		b.press(`dialog[open] button[value="yes"]`)
		b.wantText("All other sessions were revoked.")
		other.t = t
		other.visit("/-/user_settings/profile")
		other.wantPath("/users/sign_in")
	})

	step(t, "sign-out", func(t *testing.T) {
		b.t = t
		b.do(chromedp.Click(`summary[aria-label="Your account"]`, chromedp.ByQuery))
		b.press(`form[action="/users/sign_out"] button`)
		b.wantText("You signed out.")
		b.visit("/-/user_settings/profile")
		b.wantPath("/users/sign_in")
		// Pages in the browser cache do not give access either.
		b.do(chromedp.Evaluate(`fetch("/api/v4/user").then(r => window.status_ = r.status)`, nil), chromedp.Poll(`window.status_ === 401`, nil))
	})
}

// TestForcedPassword signs in with a password that an administrator has set.
func TestForcedPassword(t *testing.T) {
	s, c := start(t), launch(t)
	s.user(t, "bob")
	s.call(t, "PUT", "/users/"+id(t, s, "bob"), url.Values{"password": {"chosen by somebody else"}})
	b := c.open(t, s)
	b.signIn("bob", "chosen by somebody else")
	b.wantPath("/-/user_settings/password/edit")
	b.visit("/dashboard")
	b.wantPath("/-/user_settings/password/edit")
	b.fill("#current_password", "chosen by somebody else")
	b.fill("#password", "one of his own")
	b.fill("#password_confirmation", "one of his own")
	b.press("main form button")
	b.wantPath("/")
}

// TestKeys uses keyboard shortcuts and the theme switch.
func TestKeys(t *testing.T) {
	s, c := start(t), launch(t)
	s.user(t, "eve")
	b := c.open(t, s)
	b.signIn("eve", password)
	b.do(typed("?"), chromedp.WaitVisible("dialog[data-keys]", chromedp.ByQuery), chromedp.Click("dialog[data-keys] button", chromedp.ByQuery))
	b.do(typed("/"), chromedp.Poll(`document.activeElement.name === "search"`, nil), chromedp.Evaluate(`document.activeElement.blur()`, nil))
	b.do(typed("d"), chromedp.Poll(`document.documentElement.dataset.theme !== undefined`, nil))
	var chosen, kept string
	b.do(chromedp.Evaluate(`document.documentElement.dataset.theme`, &chosen))
	b.visit("/explore")
	b.do(chromedp.Evaluate(`document.documentElement.dataset.theme`, &kept))
	if kept != chosen {
		t.Errorf("the theme is %q on the next page, want %q", kept, chosen)
	}
	b.do(typed("g"), typed("g"), chromedp.WaitReady(`a[aria-current][href="/dashboard/groups"]`, chromedp.ByQuery))
}

// step runs a part of a test that later parts depend on.
func step(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	if !t.Run(name, f) {
		t.FailNow()
	}
}

func id(t *testing.T, s *server, username string) string {
	t.Helper()
	body := s.call(t, "GET", "/users?username="+username, nil)
	_, rest, _ := strings.Cut(body, `"id":`)
	number, _, _ := strings.Cut(rest, ",")
	return number
}

func code(t *testing.T, secret string) string {
	t.Helper()
	code, err := totp.GenerateCode(secret, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// codeAfter returns the next code, because the current one may have been used.
func codeAfter(t *testing.T, secret string) string {
	t.Helper()
	code, err := totp.GenerateCode(secret, time.Now().Add(30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return code
}
