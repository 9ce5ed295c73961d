package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/pages/cert/certtest"
	"svc/internal/waittest"
)

func quoted(text string) string {
	out, _ := json.Marshal(text)
	return string(out)
}

func TestPagesDomains(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		id := newProject(t, s, alice, "site", "")
		other := newProject(t, s, bob, "site", "")
		at := fmt.Sprintf("/projects/%d/pages/domains", id)
		ca := certtest.New(t)
		now := s.Clock.Now()
		chain, key := ca.Below("Middle").Issue(now.AddDate(0, 1, 0), "ssl.example.org")
		_, wrongKey := ca.Issue(now.AddDate(0, 1, 0), "ssl.example.org")
		old, oldKey := ca.Issue(now.AddDate(-1, 0, 0), "ssl.example.org")
		with := func(domain, certificate, key string) string {
			return fmt.Sprintf(`{"domain":%q,"certificate":%s,"key":%s}`, domain, quoted(certificate), quoted(key))
		}
		s.Table(t, []apptest.Call{
			{Name: "none", Do: "GET " + at, As: alice, Status: 200, Want: `[]`},
			{Name: "no name", Do: "POST " + at, As: alice, JSON: `{}`, Status: 400, Want: `{"error":"domain is missing"}`},
			{Name: "no host", Do: "POST " + at, As: alice, JSON: `{"domain":"example"}`, Status: 400, Want: `{"message":{"domain":["is not a valid name of a host"]}}`},
			{Name: "a path", Do: "POST " + at, As: alice, JSON: `{"domain":"example.org/x"}`, Status: 400},
			{Name: "an address", Do: "POST " + at, As: alice, JSON: `{"domain":"127.0.0.1"}`, Status: 400},
			{Name: "a wildcard", Do: "POST " + at, As: alice, JSON: `{"domain":"*.example.org"}`, Status: 400},
			{Name: "ours", Do: "POST " + at, As: alice, JSON: `{"domain":"x.pages.localhost"}`, Status: 400, Want: `{"message":{"domain":["*.pages.localhost is a reserved name"]}}`},
			{Name: "certificate alone", Do: "POST " + at, As: alice, JSON: `{"domain":"www.example.org","certificate":"x"}`, Status: 400,
				Want: `{"error":"certificate, key provide all or none of parameters"}`},
			{Name: "no certificate", Do: "POST " + at, As: alice, JSON: with("www.example.org", "x", key), Status: 400,
				Want: `{"message":{"certificate":["must be a valid PEM certificate"]}}`},
			{Name: "another key", Do: "POST " + at, As: alice, JSON: with("www.example.org", chain, wrongKey), Status: 400,
				Want: `{"message":{"key":["doesn't match the certificate"]}}`},
			{Name: "expired", Do: "POST " + at, As: alice, JSON: with("www.example.org", old, oldKey), Status: 400, Want: `{"message":{"certificate":["has expired"]}}`},
			{Name: "create", Do: "POST " + at, As: alice, JSON: `{"domain":"WWW.Example.org."}`, Status: 201, Want: `{"domain":"www.example.org","url":"http://www.example.org","auto_ssl_enabled":false,"verified":true,"verification_code":"<any>","enabled_until":null}`,
				Not: []string{"certificate", "project_id"}},
			{Name: "create with a certificate", Do: "POST " + at, As: alice, JSON: with("ssl.example.org", chain, key), Status: 201,
				Want: `{"domain":"ssl.example.org","url":"https://ssl.example.org","auto_ssl_enabled":false,"certificate":{"subject":"/O=Example, Inc./CN=ssl.example.org","expired":false,
					"certificate":` + quoted(chain) + `,"certificate_text":"<any>"}}`, Not: []string{"PRIVATE KEY"}},
			{Name: "automatic", Do: "POST " + at, As: alice, JSON: `{"domain":"auto.example.org","auto_ssl_enabled":true}`, Status: 201, Want: `{"auto_ssl_enabled":true}`},
			{Name: "other alphabets", Do: "POST " + at, As: alice, JSON: `{"domain":"bücher.example.org"}`, Status: 201, Want: `{"domain":"xn--bcher-kva.example.org"}`},
			{Name: "taken", Do: "POST " + fmt.Sprintf("/projects/%d/pages/domains", other), As: bob, JSON: `{"domain":"www.example.ORG"}`, Status: 400,
				Want: `{"message":{"domain":["has already been taken"]}}`},
			{Name: "list", Do: "GET " + at, As: alice, Status: 200, Want: `[{"domain":"auto.example.org"},{"domain":"ssl.example.org"},{"domain":"www.example.org"},{"domain":"xn--bcher-kva.example.org"}]`,
				WantHeader: map[string]string{"X-Total": "4"}},
			{Name: "one", Do: "GET " + at + "/SSL.example.org", As: alice, Status: 200, Want: `{"domain":"ssl.example.org","certificate":{"expired":false}}`},
			{Name: "one by its own alphabet", Do: "GET " + at + "/b%C3%BCcher.example.org", As: alice, Status: 200, Want: `{"domain":"xn--bcher-kva.example.org"}`},
			{Name: "no such", Do: "GET " + at + "/none.example.org", As: alice, Status: 404, Want: `{"message":"404 PagesDomain Not Found"}`},
			{Name: "of another project", Do: "GET " + fmt.Sprintf("/projects/%d/pages/domains/ssl.example.org", other), As: bob, Status: 404, Want: `{"message":"404 PagesDomain Not Found"}`},
			{Name: "not by others", Do: "GET " + at, As: bob, Status: 404, Want: `{"message":"404 Project Not Found"}`},
			{Name: "all", Do: "GET /pages/domains", As: root, Status: 200, Want: fmt.Sprintf(`[{"domain":"auto.example.org","project_id":%d,"auto_ssl_enabled":true,"verified":true,"verification_code":"<any>","enabled_until":null},
				{"domain":"ssl.example.org","project_id":%d,"auto_ssl_enabled":false,"certificate":{"expired":false,"expiration":"<any>"},
					"certificate_expiration":{"expired":false,"expiration":"<any>"}},{},{}]`, id, id), Not: []string{"BEGIN"}},
			{Name: "change: key alone", Do: "PUT " + at + "/ssl.example.org", As: alice, JSON: `{"key":"x"}`, Status: 400},
			{Name: "change: automatic", Do: "PUT " + at + "/ssl.example.org", As: alice, JSON: `{"auto_ssl_enabled":true}`, Status: 200, Want: `{"auto_ssl_enabled":true,"certificate":{"expired":false}}`},
			{Name: "change: one's own", Do: "PUT " + at + "/ssl.example.org", As: alice, JSON: with("", chain, key), Status: 200, Want: `{"auto_ssl_enabled":false,"certificate":{"expired":false}}`},
			{Name: "change: automatic again", Do: "PUT " + at + "/ssl.example.org", As: alice, JSON: `{"auto_ssl_enabled":true}`, Status: 200, Want: `{"auto_ssl_enabled":true}`},
			{Name: "change: take away", Do: "PUT " + at + "/ssl.example.org", As: alice, JSON: `{"certificate":"","key":""}`, Status: 200, Want: `{"url":"http://ssl.example.org"}`,
				Not: []string{"certificate"}},
			{Name: "change: put one", Do: "PUT " + at + "/www.example.org", As: alice, JSON: with("", chain, key), Status: 200, Want: `{"url":"https://www.example.org","certificate":{"expired":false}}`},
			{Name: "delete", Do: "DELETE " + at + "/auto.example.org", As: alice, Status: 204},
			{Name: "twice", Do: "DELETE " + at + "/auto.example.org", As: alice, Status: 404},
			{Name: "no DNS", Do: "PUT " + at + "/www.example.org/verify", As: alice, Status: 422},
			{Name: "audit", Do: fmt.Sprintf("GET /projects/%d/audit_events?per_page=1", id), As: alice, Status: 200,
				Want: `[{"details":{"remove":"pages_domain","target_type":"PagesDomain","target_details":"auto.example.org"}}]`},
		})
		t.Run("as files", func(t *testing.T) {
			a := s.Exchange(t, multipartOf(t, "PUT", s.URL+"/api/v4"+at+"/ssl.example.org", alice, map[string]string{"certificate": chain, "key": key}))
			if a.Status != 200 || !strings.Contains(string(a.Body), "Certificate:") {
				t.Errorf("status %d: %s", a.Status, a.Body)
			}
		})
		t.Run("sealed", func(t *testing.T) {
			var stored string
			if err := s.DB.QueryRowContext(t.Context(), `SELECT private_key FROM pages_domains WHERE domain = 'ssl.example.org'`).Scan(&stored); err != nil {
				t.Fatal(err)
			}
			if stored == "" || strings.Contains(stored, "PRIVATE") {
				t.Errorf("the key is stored as %.40s", stored)
			}
		})
		s.Clock.Move(40 * 24 * time.Hour)
		s.Table(t, []apptest.Call{
			{Name: "expires", Do: "GET " + at + "/ssl.example.org", As: root, Status: 200, Want: `{"certificate":{"expired":true}}`},
			{Name: "turn off", Do: fmt.Sprintf("PUT /projects/%d", id), As: root, JSON: `{"pages_access_level":"disabled"}`, Status: 200},
			{Name: "notified", Do: fmt.Sprintf("GET /projects/%d/audit_events?per_page=1", id), As: root, Status: 200, Want: `[{"details":{"change":"pages_access_level","from":"private","to":"disabled"}}]`},
			{Name: "turned off", Do: "GET " + at, As: root, Status: 404},
			{Name: "turned off too", Do: fmt.Sprintf("GET /projects/%d/pages", id), As: root, Status: 404},
		})
	})
}

// TestPagesDomainLimit checks the maximum number of domains of a project.
func TestPagesDomainLimit(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id := newProject(t, s, alice, "site", "")
		at := fmt.Sprintf("/projects/%d/pages/domains", id)
		s.Check(t, apptest.Call{Do: "GET /application/settings", As: root, Status: 200, Want: `{"max_pages_custom_domains_per_project":100}`})
		for n := range 100 {
			s.Check(t, apptest.Call{Do: "POST " + at, As: alice, JSON: fmt.Sprintf(`{"domain":"d%d.example.org"}`, n), Status: 201})
		}
		more := apptest.Call{Do: "POST " + at, As: alice, JSON: `{"domain":"more.example.org"}`, Status: 400,
			Want: `{"message":{"base":["This project reached the limit of custom domains. (Max 100)"]}}`}
		s.Check(t, more)
		s.Check(t, apptest.Call{Do: "DELETE " + at + "/d1.example.org", As: alice, Status: 204})
		more.Status, more.Want = 201, ""
		s.Check(t, more)
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: root, JSON: `{"max_pages_custom_domains_per_project":0}`, Status: 200})
		s.Check(t, apptest.Call{Do: "POST " + at, As: alice, JSON: `{"domain":"d1.example.org"}`, Status: 201})
	})
}

// TestPagesSlowDNS checks that name servers that do not answer only delay the checks of
// other domains.
func TestPagesSlowDNS(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		asked, open := make(chan string, 1000), make(chan struct{})
		var once sync.Once
		answer := func() { once.Do(func() { close(open) }) }
		t.Cleanup(answer)
		s.Pages.LookupTXT = func(_ context.Context, name string) ([]string, error) {
			asked <- name
			<-open
			return nil, errors.New("no such host")
		}
		gone, _ := s.User(t, "gone")
		_, alice := s.User(t, "alice")
		id := newProject(t, s, alice, "site", "")
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: root, JSON: `{"pages_domain_verification_enabled":true}`, Status: 200})
		for n := range 4*runtime.GOMAXPROCS(0) + 4 {
			s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/pages/domains", id), As: alice, JSON: fmt.Sprintf(`{"domain":"d%d.example.org"}`, n), Status: 201})
		}
		waittest.Receive(t, "a query", asked)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /users/%d", gone), As: root, Status: 204})
		waittest.For(t, "another background job", func() bool {
			return s.Send(t, apptest.Call{Do: fmt.Sprintf("GET /users/%d", gone), As: root}).Status == 404
		})
		answer()
		s.Settled(t)
	})
}

// multipartOf returns a multipart request with files.
func multipartOf(t *testing.T, method, address, token string, files map[string]string) *http.Request {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for name, content := range files {
		w, err := form.CreateFormFile(name, name+".pem")
		if err == nil {
			_, err = w.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, address, &body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("PRIVATE-TOKEN", token)
	r.Header.Set("Content-Type", form.FormDataContentType())
	return r
}

// fakeDNS is a resolver with the records that the test has set.
type fakeDNS struct {
	mu      sync.Mutex
	records map[string]string
}

func (f *fakeDNS) lookup(_ context.Context, name string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if text, ok := f.records[name]; ok {
		return []string{"v=spf1 -all", text}, nil
	}
	return nil, errors.New("no such host")
}

func (f *fakeDNS) set(name, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.records[name] = text
}

func TestPagesVerification(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		dns := &fakeDNS{records: map[string]string{}}
		s.Pages.LookupTXT = dns.lookup
		_, alice := s.User(t, "alice")
		id := newProject(t, s, alice, "site", "")
		at := fmt.Sprintf("/projects/%d/pages/domains", id)
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: root, JSON: `{"pages_domain_verification_enabled":true}`, Status: 200, Want: `{"pages_domain_verification_enabled":true,"max_pages_size":100}`})
		var made struct {
			Code string `json:"verification_code"`
		}
		s.Check(t, apptest.Call{Do: "POST " + at, As: alice, JSON: `{"domain":"www.example.org"}`, Status: 201, Want: `{"verified":false,"verification_code":"<any>"}`}).JSON(t, &made)
		s.Settled(t)
		s.Check(t, apptest.Call{Name: "no record", Do: "PUT " + at + "/www.example.org/verify", As: alice, Status: 422})
		dns.set("_svc-pages-verification-code.www.example.org", "svc-pages-verification-code=wrong")
		s.Check(t, apptest.Call{Name: "another code", Do: "PUT " + at + "/www.example.org/verify", As: alice, Status: 422})
		dns.set("_svc-pages-verification-code.www.example.org", "svc-pages-verification-code="+made.Code)
		s.Check(t, apptest.Call{Name: "verified", Do: "PUT " + at + "/www.example.org/verify", As: alice, Status: 200, Want: `{"verified":true,"enabled_until":"<any>"}`})
		dns.set("_svc-pages-verification-code.www.example.org", "gone")
		again := func() {
			t.Helper()
			if err := s.Pages.CheckDomains(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.Settled(t)
		}
		s.Clock.Move(24 * time.Hour)
		again()
		s.Check(t, apptest.Call{Name: "a bad day", Do: "GET " + at + "/www.example.org", As: alice, Status: 200, Want: `{"verified":true}`})
		s.Clock.Move(7 * 24 * time.Hour)
		again()
		s.Check(t, apptest.Call{Name: "over", Do: "GET " + at + "/www.example.org", As: alice, Status: 200, Want: `{"verified":false}`})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/audit_events?per_page=2", id), As: alice, Status: 200,
			Want: `[{"details":{"change":"verified","from":"true","to":"false"}},{"details":{"change":"verified","from":"false","to":"true"}}]`})

		// A domain that is not verified blocks its owner for a week only.
		_, bob := s.User(t, "bob")
		take := apptest.Call{Do: fmt.Sprintf("POST /projects/%d/pages/domains", newProject(t, s, bob, "site", "")), As: bob, JSON: `{"domain":"www.example.org"}`, Status: 400}
		s.Clock.Move(6 * 24 * time.Hour)
		again()
		s.Check(t, take)
		s.Clock.Move(2 * 24 * time.Hour)
		again()
		s.Check(t, apptest.Call{Name: "removed", Do: "GET " + at + "/www.example.org", As: alice, Status: 404})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/audit_events?per_page=1", id), As: alice, Status: 200,
			Want: `[{"details":{"remove":"pages_domain","target_details":"www.example.org"}}]`})
		take.Status = 201
		s.Check(t, take)

		// While verification is not required, no time passes.
		require := func(on bool) {
			t.Helper()
			s.Check(t, apptest.Call{Do: "PUT /application/settings", As: root, JSON: fmt.Sprintf(`{"pages_domain_verification_enabled":%t}`, on), Status: 200})
			again()
		}
		require(false)
		s.Clock.Move(30 * 24 * time.Hour)
		require(true)
		take.Status = 400
		s.Check(t, take)
		s.Clock.Move(8 * 24 * time.Hour)
		again()
		take.Status = 201
		s.Check(t, take)
	})
}
