package browser

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// application is a third-party application on another origin, with which users sign
// in with their account.
type application struct {
	*httptest.Server
	s          *server
	id, secret string
	seen       chan string // username of a user who returned, or the error
}

func newApplication(t *testing.T, s *server, trusted string) *application {
	t.Helper()
	a := &application{s: s, seen: make(chan string, 10)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, a.authorize(), http.StatusFound) })
	mux.HandleFunc("GET /cb", a.back)
	a.Server = httptest.NewServer(mux)
	t.Cleanup(a.Close)
	var made struct {
		ID     string `json:"application_id"`
		Secret string `json:"secret"`
	}
	answer := s.call(t, "POST", "/applications", url.Values{
		"name": {"Build monitor"}, "redirect_uri": {a.URL + "/cb"}, "scopes": {"read_user openid email"}, "trusted": {trusted},
	})
	if err := json.Unmarshal([]byte(answer), &made); err != nil {
		t.Fatal(err)
	}
	a.id, a.secret = made.ID, made.Secret
	return a
}

// authorize returns the URL to which the application sends users for authorization.
func (a *application) authorize() string {
	return a.s.url + "/oauth/authorize?" + url.Values{
		"client_id": {a.id}, "redirect_uri": {a.URL + "/cb"}, "response_type": {"code"}, "scope": {"read_user openid email"}, "state": {"kept"},
	}.Encode()
}

// back is the callback URL: it reads the user with the code that it receives.
func (a *application) back(w http.ResponseWriter, r *http.Request) {
	text, err := a.learn(r.URL.Query())
	if err != nil {
		text = err.Error()
	}
	a.seen <- fmt.Sprintf("%s, from [%s]", text, r.Referer())
	fmt.Fprintf(w, "<main>%s</main>", html.EscapeString(text))
}

func (a *application) learn(q url.Values) (string, error) {
	if q.Get("state") != "kept" || q.Get("error") != "" {
		return fmt.Sprintf("refused: %s, state %s", q.Get("error"), q.Get("state")), nil
	}
	res, err := http.PostForm(a.s.url+"/oauth/token", url.Values{
		"grant_type": {"authorization_code"}, "client_id": {a.id}, "client_secret": {a.secret}, "code": {q.Get("code")}, "redirect_uri": {a.URL + "/cb"},
	})
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var token struct {
		Access string `json:"access_token"`
		Scope  string `json:"scope"`
	}
	if err := json.NewDecoder(res.Body).Decode(&token); err != nil {
		return "", err
	}
	who, err := http.Get(a.s.url + "/oauth/userinfo?access_token=" + token.Access)
	if err != nil {
		return "", err
	}
	defer who.Body.Close()
	var person struct{ Nickname string }
	err = json.NewDecoder(who.Body).Decode(&person)
	return fmt.Sprintf("hello %s, scope %s", person.Nickname, token.Scope), err
}

// wantSeen waits for a user to return. It asks the application instead of the
// browser, because the DevTools connection of the tab is lost when it leaves the
// site.
func (a *application) wantSeen(t *testing.T, want string) {
	t.Helper()
	if got := receive(t, "the browser comes back", a.seen); got != want {
		t.Errorf("the application received %q, want %q", got, want)
	}
}

// TestConsentFlow authorizes third-party applications.
func TestConsentFlow(t *testing.T) {
	s, c := start(t), launch(t)
	s.user(t, "ada")
	asked, trusted := newApplication(t, s, "false"), newApplication(t, s, "true")
	const welcome = "hello ada, scope read_user openid email, from []"
	begin := func(t *testing.T, a *application) *tab {
		t.Helper()
		b := c.open(t, s)
		b.do(chromedp.Navigate(a.URL+"/login"), chromedp.WaitReady("main", chromedp.ByQuery))
		b.wantPath("/users/sign_in")
		b.fill("#login", "ada")
		b.fill("#password", password)
		return b
	}
	// leave clicks an element that leads to another site.
	leave := func(b *tab, selector string) {
		b.t.Helper()
		b.do(chromedp.Evaluate(fmt.Sprintf(`setTimeout(() => document.querySelector(%q).click())`, selector), nil))
	}

	step(t, "sign in and agree", func(t *testing.T) {
		b := begin(t, asked)
		b.press("main form button")
		b.wantPath("/oauth/authorize")
		b.wantText("Authorize Build monitor?")
		b.wantText("Sign in with your account")
		b.wantText(strings.TrimPrefix(asked.URL, "http://"))
		b.look("consent")
		leave(b, `button[value="allow"]`)
		asked.wantSeen(t, welcome)
	})
	step(t, "not asked twice", func(t *testing.T) {
		leave(begin(t, asked), "main form button")
		asked.wantSeen(t, welcome)
	})
	step(t, "taken back", func(t *testing.T) {
		b := c.open(t, s)
		b.signIn("ada", password)
		b.visit("/-/user_settings/applications")
		b.wantText("Build monitor")
		b.look("applications")
		b.do(chromedp.Click(`form[action$="/revoke"] button`, chromedp.ByQuery), chromedp.WaitVisible("dialog[open]", chromedp.ByQuery))
		b.press(`dialog[open] button[value="yes"]`)
		b.wantText("The application can no longer use your account.")
	})
	step(t, "asked again, and not agreed", func(t *testing.T) {
		b := begin(t, asked)
		b.press("main form button")
		b.wantText("Authorize Build monitor?")
		leave(b, `button[value="deny"]`)
		asked.wantSeen(t, "refused: access_denied, state kept, from []")
	})
	step(t, "a trusted one, right after signing in", func(t *testing.T) {
		leave(begin(t, trusted), "main form button")
		trusted.wantSeen(t, welcome)
	})
}
