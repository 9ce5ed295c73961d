package sites_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// walk follows redirects until stop accepts the next URL, and returns that URL. If a
// response is not a redirect, it returns nil and the status.
func walk(t *testing.T, c *http.Client, at string, stop func(*url.URL) bool) (next *url.URL, status int) {
	t.Helper()
	for range 10 {
		to, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		if stop(to) {
			return to, 0
		}
		res, err := c.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		location := res.Header.Get("Location")
		if location == "" {
			return nil, res.StatusCode
		}
		if to, err = to.Parse(location); err != nil {
			t.Fatal(err)
		}
		at = to.String()
	}
	t.Fatalf("no end at %s", at)
	return nil, 0
}

func atPath(path string) func(*url.URL) bool {
	return func(u *url.URL) bool { return u.Path == path }
}

func onHost(host string) func(*url.URL) bool {
	return func(u *url.URL) bool { return u.Host == host }
}

// request returns the URL of the authorization request to which a site redirects.
func request(t *testing.T, c *http.Client, site string) *url.URL {
	t.Helper()
	u, status := walk(t, c, site, atPath("/oauth/authorize"))
	if u == nil {
		t.Fatalf("%s leads to no authorization request: %d", site, status)
	}
	return u
}

func with(u *url.URL, name, value string) string {
	v := *u
	q := v.Query()
	q.Set(name, value)
	v.RawQuery = q.Encode()
	return v.String()
}

// TestPagesSignInTheft checks that the owner of a custom domain cannot get a session
// on other sites as a user who follows a link.
func TestPagesSignInTheft(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, _ := s.User(t, "bob")
		_, mallory := s.User(t, "mallory")
		id := newProject(t, s, alice, `{"path":"site","visibility":"public","pages_access_level":"private"}`)
		s.Publish(t, id, map[string]string{"public/index.html": "Members only"})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/members", id), As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":10}`, bobID), Status: 201})
		evil := newProject(t, s, mallory, `{"path":"evil","visibility":"public","pages_access_level":"private"}`)
		s.Publish(t, evil, map[string]string{"public/index.html": "Evil"})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/pages/domains", evil), As: mallory, JSON: `{"domain":"evil.example.org"}`, Status: 201})

		victim := s.Browser(t)
		signIn(t, s, victim, "bob")
		verifier := strings.Repeat("v", 64)
		sum := sha256.Sum256([]byte(verifier))
		challenge := base64.RawURLEncoding.EncodeToString(sum[:])
		const site, domain = "http://alice.pages.test/site/", "http://evil.example.org/"
		token := func(values url.Values) (status int, answer struct{ Error string }) {
			t.Helper()
			res, err := victim.PostForm(s.URL+"/oauth/token", values)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
				t.Fatal(err)
			}
			return res.StatusCode, answer
		}
		client := request(t, s.Browser(t), site).Query()

		t.Run("a code with a challenge of the attacker", func(t *testing.T) {
			attacker := s.Browser(t)
			link := with(request(t, attacker, domain), "code_challenge", challenge)
			if to, _ := walk(t, victim, link, onHost("evil.example.org")); to != nil {
				t.Errorf("a request that another browser began is passed on to the custom domain: %s", to)
			}
			// Not even the code that only the shared host receives can be used.
			back, status := walk(t, victim, link, onHost("projects.pages.test"))
			if back == nil {
				t.Fatalf("no code: %d", status)
			}
			status, answer := token(url.Values{"grant_type": {"authorization_code"}, "client_id": {client.Get("client_id")}, "code": {back.Query().Get("code")},
				"redirect_uri": {client.Get("redirect_uri")}, "code_verifier": {verifier}})
			if status != 401 || answer.Error != "invalid_client" {
				t.Errorf("the token endpoint gives a stranger a token of the Pages application: %d %v", status, answer)
			}
		})
		t.Run("a code that was relayed to another site", func(t *testing.T) {
			attacker := s.Browser(t)
			mine := request(t, attacker, site) // the attacker's browser has the cookie with the verifier
			link := with(request(t, attacker, domain), "code_challenge", mine.Query().Get("code_challenge"))
			stolen, _ := walk(t, victim, link, onHost("evil.example.org"))
			if stolen != nil {
				walk(t, attacker, "http://alice.pages.test/-/pages/auth?"+url.Values{"code": {stolen.Query().Get("code")}, "state": {mine.Query().Get("state")}}.Encode(), atPath("/site/"))
			}
			visit{name: "the attacker is bob now", at: site, status: 302}.do(t, attacker)
		})
		t.Run("what the custom domain gets is good there alone", func(t *testing.T) {
			attacker := s.Browser(t)
			mine := request(t, attacker, site)
			// The victim follows all redirects from the first link that the attacker
			// got.
			first := visit{at: domain, status: 302}.do(t, attacker).Header.Get("Location")
			got, status := walk(t, victim, first, onHost("evil.example.org"))
			if got == nil {
				t.Fatalf("the way to the custom domain ends with %d", status)
			}
			code := got.Query().Get("code")
			for name, state := range map[string]string{"its state": got.Query().Get("state"), "another state": mine.Query().Get("state")} {
				at := "http://alice.pages.test/-/pages/auth?" + url.Values{"code": {code}, "state": {state}}.Encode()
				visit{name: name, at: at, status: 400}.do(t, attacker)
			}
			visit{name: "the attacker is bob now", at: site, status: 302}.do(t, attacker)
			visit{name: "a browser that did not begin", at: got.String(), status: 400}.do(t, s.Browser(t))
			if status, answer := token(url.Values{"grant_type": {"authorization_code"}, "client_id": {client.Get("client_id")}, "code": {code},
				"redirect_uri": {client.Get("redirect_uri")}, "code_verifier": {verifier}}); status != 401 {
				t.Errorf("a sealed code at the token endpoint: %d %v", status, answer)
			}
		})
		t.Run("the shared host redirects only who began there", func(t *testing.T) {
			state := request(t, s.Browser(t), domain).Query().Get("state")
			for _, c := range []*http.Client{victim, s.Browser(t)} {
				visit{at: "http://projects.pages.test/auth?state=" + url.QueryEscape(state), status: 400, has: map[string]string{"Location": "-"}}.do(t, c)
			}
		})
		t.Run("a sign-in of somebody else", func(t *testing.T) {
			// A link must not sign bob in as mallory (login CSRF).
			attacker := s.Browser(t)
			signIn(t, s, attacker, "mallory")
			end, status := walk(t, attacker, domain, atPath("/-/pages/auth"))
			if end == nil {
				t.Fatalf("no code: %d", status)
			}
			visit{name: "before any visit", at: end.String(), status: 400}.do(t, victim)
			request(t, victim, domain)
			visit{name: "amid a sign-in", at: end.String(), status: 400}.do(t, victim)
			visit{name: "the attacker", at: end.String(), status: 302}.do(t, attacker)
			visit{name: "a replay", at: end.String(), status: 400}.do(t, attacker)
		})
		t.Run("a port of somebody else", func(t *testing.T) {
			for at, want := range map[string]string{"http://alice.pages.test:1234/site/": "alice.pages.test", "http://evil.example.org:1234/": "evil.example.org"} {
				end, status := walk(t, victim, at, atPath("/-/pages/auth"))
				if end == nil {
					t.Fatalf("%s: no code: %d", at, status)
				}
				if end.Host != want {
					t.Errorf("%s: the code goes to %s", at, end.Host)
				}
			}
		})
		t.Run("no grant is open to the Pages application from outside", func(t *testing.T) {
			for _, values := range []url.Values{
				{"grant_type": {"authorization_code"}, "code": {"x"}, "redirect_uri": {client.Get("redirect_uri")}, "code_verifier": {verifier}},
				{"grant_type": {"refresh_token"}, "refresh_token": {"x"}},
				{"grant_type": {"password"}, "username": {"bob"}, "password": {"a good password"}, "scope": {"openid"}},
			} {
				values.Set("client_id", client.Get("client_id"))
				if status, answer := token(values); status != 401 || answer.Error != "invalid_client" {
					t.Errorf("%s: %d %v", values.Get("grant_type"), status, answer)
				}
			}
			res, err := victim.PostForm(s.URL+"/oauth/revoke", url.Values{"client_id": {client.Get("client_id")}, "token": {"x"}})
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != 401 {
				t.Errorf("revoke: %d", res.StatusCode)
			}
		})
		// The visitor can still sign in afterwards.
		if got, last := follow(t, victim, site); last != site || !strings.Contains(got, "Members only") {
			t.Errorf("bob ends at %s: %s", last, got)
		}
	}, apptest.Pages)
}

// TestPrivateSiteOracle checks that responses do not reveal whether a private site
// exists.
func TestPrivateSiteOracle(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		s.User(t, "carl")
		publish := func(token, settings string, files map[string]string) int64 {
			id := newProject(t, s, token, settings)
			s.Publish(t, id, files)
			return id
		}
		publish(alice, `{"path":"secret","visibility":"private","pages_access_level":"private"}`, map[string]string{"public/index.html": "Secret"})
		unique := publish(alice, `{"path":"unique","visibility":"private","pages_access_level":"private"}`, map[string]string{"public/index.html": "Unique"})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PATCH /projects/%d/pages", unique), As: alice, JSON: `{"pages_unique_domain_enabled":true,"pages_https_only":true}`, Status: 200})
		// The site of bob's namespace is public and has a 404 page.
		publish(bob, `{"path":"bob.pages.test","visibility":"public","pages_access_level":"public"}`,
			map[string]string{"public/index.html": "Open", "public/404.html": "Bob has no such page", "public/a.html": "A"})
		publish(bob, `{"path":"secret","visibility":"private","pages_access_level":"private"}`, map[string]string{"public/index.html": "Secret", "public/404.html": "Secret"})

		look := func(t *testing.T, c *http.Client, at string) string {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+at, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := c.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			to, _, _ := strings.Cut(res.Header.Get("Location"), "?")
			if to != "" {
				body = nil // it contains a link with a sealed value
			}
			names := slices.Sorted(maps.Keys(res.Header))
			return fmt.Sprintf("%d %s %v %s", res.StatusCode, to, names, body)
		}
		carl := s.Browser(t)
		signIn(t, s, carl, "carl")
		for _, host := range []string{"alice.pages.test", "bob.pages.test", "nobody.pages.test"} {
			follow(t, carl, "http://"+host+"/missing/") // creates a session on the host
		}
		for name, c := range map[string]*http.Client{"anonymous": nil, "a user who is not a member": carl} {
			t.Run(name, func(t *testing.T) {
				for host, sites := range map[string][]string{"alice.pages.test": {"secret", "unique"}, "bob.pages.test": {"secret"}} {
					for _, site := range sites {
						for _, rest := range []string{"", "/", "/x", "/x/y.html", "//", "/index.html"} {
							one, two := c, c
							if c == nil {
								one, two = s.Browser(t), s.Browser(t)
							}
							got, want := look(t, one, host+"/"+site+rest), look(t, two, host+"/nothing"+rest)
							if got != want {
								t.Errorf("%s/%s%s: a private site answers %s, no site %s", host, site, rest, got, want)
							}
						}
					}
				}
			})
		}
		// Responses do not reveal whether a namespace has any site.
		if got, want := look(t, s.Browser(t), "alice.pages.test/secret/"), look(t, s.Browser(t), "nobody.pages.test/secret/"); got != want {
			t.Errorf("a private site answers %s, a host without any %s", got, want)
		}
		visit{name: "an open page beside a private site", at: "bob.pages.test/a", status: 200, want: "A"}.do(t, s.Browser(t))
		visit{name: "a missing page of an open site", at: "bob.pages.test/secrets", status: 302}.do(t, s.Browser(t))
		visit{name: "a missing page of an open site, signed in", at: "bob.pages.test/secrets", status: 404, want: "Bob has no such page"}.do(t, carl)
		member := s.Browser(t)
		signIn(t, s, member, "alice")
		if got, last := follow(t, member, "http://alice.pages.test/unique/"); !strings.Contains(got, "Unique") {
			t.Errorf("a member ends at %s: %s", last, got)
		}
		if got, last := follow(t, member, "http://nobody.pages.test/x"); !strings.Contains(got, "404") {
			t.Errorf("the visit of a site that does not exist ends at %s: %s", last, got)
		}
	}, apptest.Pages)
}
