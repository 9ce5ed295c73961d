package web_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// password is the password of every account that apptest creates.
const password = "a good password"

// browser is an HTTP client that keeps cookies like a browser and follows no
// redirects.
type browser struct {
	t      *testing.T
	s      *apptest.Server
	client *http.Client
}

func newBrowser(t *testing.T, s *apptest.Server) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t, s, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// answer is a response.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   string
}

func (b *browser) send(r *http.Request) answer {
	b.t.Helper()
	res, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer{b.t, res.StatusCode, res.Header, string(body)}
}

func (b *browser) get(path string) answer {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), "GET", b.address(path), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.send(r)
}

func (b *browser) address(path string) string {
	if strings.HasPrefix(path, "/") {
		return b.s.URL + path
	}
	return path
}

// post submits a form with exactly these values.
func (b *browser) post(path string, form url.Values) answer {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), "POST", b.address(path), strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.send(r)
}

// submit fills in the form of a page and submits it to action.
func (b *browser) submit(at, action string, pairs ...string) answer {
	b.t.Helper()
	form := url.Values{"authenticity_token": {b.get(at).want(200).token()}}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return b.post(action, form)
}

func (b *browser) signIn(login, password string) *browser {
	b.t.Helper()
	b.submit("/users/sign_in", "/users/sign_in", "login", login, "password", password).leads("/")
	return b
}

func (b *browser) cookie(name string) string {
	u, _ := url.Parse(b.s.URL + "/users")
	for _, c := range b.client.Jar.Cookies(u) {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

var tokenField = regexp.MustCompile(`name="authenticity_token" value="([^"]+)"`)

func (p answer) token() string {
	p.t.Helper()
	m := tokenField.FindStringSubmatch(p.body)
	if m == nil {
		p.t.Fatalf("the page has no token: %s", p.body)
	}
	return m[1]
}

// under checks that the page is smaller than a number of bytes.
func (p answer) under(bytes int) answer {
	p.t.Helper()
	if len(p.body) > bytes {
		p.t.Errorf("the page has %d bytes, want at most %d", len(p.body), bytes)
	}
	return p
}

func (p answer) want(status int, texts ...string) answer {
	p.t.Helper()
	if p.status != status {
		p.t.Fatalf("status %d, want %d: %s", p.status, status, p.body)
	}
	for _, text := range texts {
		if !strings.Contains(p.body, text) {
			p.t.Fatalf("the page does not have %q: %s", text, p.body)
		}
	}
	return p
}

func (p answer) not(texts ...string) answer {
	p.t.Helper()
	for _, text := range texts {
		if strings.Contains(p.body, text) {
			p.t.Errorf("the page has %q: %s", text, p.body)
		}
	}
	return p
}

// leads checks that the response redirects to a path.
func (p answer) leads(to string) answer {
	p.t.Helper()
	if got := p.header.Get("Location"); p.status != http.StatusSeeOther || got != to {
		p.t.Fatalf("status %d to %q, want a redirect to %q: %s", p.status, got, to, p.body)
	}
	return p
}

// cookieAt is cookie for a cookie that is sent to one path only.
func (b *browser) cookieAt(path, name string) string {
	u, _ := url.Parse(b.s.URL + path)
	for _, c := range b.client.Jar.Cookies(u) {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}
