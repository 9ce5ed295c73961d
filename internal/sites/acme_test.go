package sites_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
	"svc/internal/pages/cert/certtest"
)

// issuer is an ACME server for tests. It checks the HTTP challenge, but nothing
// else.
type issuer struct {
	t     *testing.T
	url   string
	ca    *certtest.Authority
	sites func() string // address of the server that responds to challenges
	now   func() time.Time

	mu     sync.Mutex
	life   time.Duration
	deaf   bool // the check of challenges fails
	orders []*order
}

type order struct {
	domain, status, chain string
}

func newIssuer(t *testing.T) *issuer {
	i := &issuer{t: t, ca: certtest.New(t), life: 90 * 24 * time.Hour}
	s := httptest.NewServer(i)
	t.Cleanup(s.Close)
	i.url = s.URL
	return i
}

func (i *issuer) set(life time.Duration, deaf bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.life, i.deaf = life, deaf
}

// issued returns the number of issued certificates.
func (i *issuer) issued() (n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, o := range i.orders {
		if o.chain != "" {
			n++
		}
	}
	return n
}

// ServeHTTP implements http.Handler.
func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var sent struct{ Payload string }
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &sent) // requests for a nonce have no body
	payload, _ := base64.RawURLEncoding.DecodeString(sent.Payload)
	var what string
	var n int
	_, _ = fmt.Sscanf(strings.ReplaceAll(r.URL.Path, "/", " "), "%s %d", &what, &n)
	at := func(name string) string { return fmt.Sprintf("%s/%s/%d", i.url, name, n) }
	answer := func(status int, form map[string]any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(form)
	}
	w.Header().Set("Replay-Nonce", fmt.Sprint(time.Now().UnixNano()))
	showOrder := func(status int) {
		o := i.orders[n]
		w.Header().Set("Location", at("order"))
		answer(status, map[string]any{"status": o.status, "identifiers": []any{map[string]string{"type": "dns", "value": o.domain}}, "authorizations": []string{at("authz")},
			"finalize": at("finalize"), "certificate": at("cert")})
	}
	challenge := func() map[string]any {
		status := map[string]string{"pending": "pending", "invalid": "invalid"}[i.orders[n].status]
		if status == "" {
			status = "valid"
		}
		form := map[string]any{"type": "http-01", "url": at("challenge"), "token": fmt.Sprintf("token-%d", n), "status": status}
		if status == "invalid" {
			form["error"] = map[string]any{"type": "urn:ietf:params:acme:error:connection", "detail": "The domain leads elsewhere"}
		}
		return form
	}
	switch what {
	case "dir":
		answer(200, map[string]any{"newNonce": i.url + "/nonce", "newAccount": i.url + "/account", "newOrder": i.url + "/new"})
	case "nonce":
	case "account":
		w.Header().Set("Location", i.url+"/account/1")
		answer(201, map[string]any{"status": "valid"})
	case "new":
		var p struct{ Identifiers []struct{ Value string } }
		_ = json.Unmarshal(payload, &p)
		i.orders = append(i.orders, &order{domain: p.Identifiers[0].Value, status: "pending"})
		n = len(i.orders) - 1
		showOrder(201)
	case "order":
		showOrder(200)
	case "authz":
		one := challenge()
		answer(200, map[string]any{"status": one["status"], "identifier": map[string]string{"type": "dns", "value": i.orders[n].domain}, "challenges": []any{one}})
	case "challenge":
		i.orders[n].status = "ready"
		if i.deaf || !i.looks(i.orders[n].domain, fmt.Sprintf("token-%d", n)) {
			i.orders[n].status = "invalid"
		}
		answer(200, challenge())
	case "finalize":
		var p struct{ CSR string }
		_ = json.Unmarshal(payload, &p)
		der, _ := base64.RawURLEncoding.DecodeString(p.CSR)
		request, err := x509.ParseCertificateRequest(der)
		if err != nil {
			answer(400, map[string]any{"detail": err.Error()})
			return
		}
		o := i.orders[n]
		o.status, o.chain = "valid", i.ca.Below("Middle").IssueFor(request.PublicKey, i.now(), i.now().Add(i.life), o.domain)
		showOrder(200)
	case "cert":
		w.Header().Set("Content-Type", "application/pem-certificate-chain")
		_, _ = io.WriteString(w, i.orders[n].chain)
	default:
		answer(404, map[string]any{"detail": "no such thing"})
	}
}

// looks checks the response of a domain to a challenge.
func (i *issuer) looks(domain, token string) bool {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, i.sites())
	}}}
	res, err := client.Get("http://" + domain + "/.well-known/acme-challenge/" + token)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return err == nil && res.StatusCode == http.StatusOK && strings.HasPrefix(string(text), token+".")
}

// TestAutomatic checks that certificates are issued and renewed.
func TestAutomatic(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		i := newIssuer(t)
		s := apptest.Start(t, src, apptest.Pages, apptest.ACME(i.url+"/dir"))
		i.sites, i.now = s.PagesAddr, s.Clock.Now
		id := newProject(t, s, root, `{"path":"site","visibility":"public","pages_access_level":"public"}`)
		s.Publish(t, id, map[string]string{"public/index.html": "Home"})
		at := fmt.Sprintf("/projects/%d/pages/domains", id)
		secure := func() int {
			t.Helper()
			c := s.Browser(t)
			c.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: i.ca.Pool(), Time: s.Clock.Now}
			return visit{at: "https://www.example.org/", status: 200, want: "Home"}.do(t, c).StatusCode
		}
		later := func(d time.Duration) {
			t.Helper()
			s.Clock.Move(d)
			if err := s.Pages.RenewCertificates(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.Settled(t)
		}
		tries := func(want int, what string) {
			t.Helper()
			i.mu.Lock()
			defer i.mu.Unlock()
			if len(i.orders) != want {
				t.Errorf("%s: %d orders, want %d", what, len(i.orders), want)
			}
		}
		const day = 24 * time.Hour

		i.set(90*day, true)
		s.Check(t, apptest.Call{Do: "POST " + at, As: root, JSON: `{"domain":"www.example.org","auto_ssl_enabled":true}`, Status: 201})
		s.Settled(t)
		tries(1, "at once")
		var failure string
		if err := s.DB.QueryRowContext(t.Context(), `SELECT auto_ssl_error FROM pages_domains`).Scan(&failure); err != nil || !strings.Contains(failure, "The domain leads elsewhere") {
			t.Errorf("the owner reads %q: %v", failure, err)
		}
		later(time.Minute)
		tries(1, "too early")
		later(10 * time.Minute)
		tries(2, "again")
		later(10 * time.Minute)
		tries(2, "too early again")
		later(10 * day)
		tries(3, "days later")

		for range 5 { // does not order before its time
			for _, on := range []string{"false", "true"} {
				s.Check(t, apptest.Call{Do: "PUT " + at + "/www.example.org", As: root, JSON: `{"auto_ssl_enabled":` + on + `}`, Status: 200})
			}
			s.Check(t, apptest.Call{Do: "PUT " + at + "/www.example.org", As: root, JSON: `{"certificate":"","key":"","auto_ssl_enabled":true}`, Status: 200})
		}
		s.Settled(t)
		tries(3, "changed while it waits")
		later(10 * time.Minute)
		tries(4, "changed, so tried sooner")

		i.set(90*day, false)
		later(day)
		tries(5, "it works")
		secure()
		if err := s.DB.QueryRowContext(t.Context(), `SELECT auto_ssl_error FROM pages_domains`).Scan(&failure); err != nil || failure != "" {
			t.Errorf("the owner still reads %q: %v", failure, err)
		}
		later(59 * day)
		tries(5, "a month is left")
		i.set(6*day, false)
		later(2 * day)
		tries(6, "renewed")
		secure()
		later(3 * day)
		tries(6, "a short one lasts")
		later(2 * day)
		tries(7, "a short one is renewed")
		secure()
		if i.issued() != 3 {
			t.Errorf("%d certificates were issued, want 3", i.issued())
		}

		// Key rotation reseals the values, and they can still be opened.
		n, err := s.RotateKey(t.Context())
		if err != nil || n < 3 { // the keys of the domain and the account, and other data of the client
			t.Errorf("%d values were sealed anew: %v", n, err)
		}
		var sealed []string
		rows, err := s.DB.QueryContext(t.Context(), `SELECT value FROM pages_acme UNION ALL SELECT private_key FROM pages_domains`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				t.Fatal(err)
			}
			if sealed = append(sealed, text); strings.Contains(text, "PRIVATE") || strings.Contains(text, "BEGIN") {
				t.Errorf("stored in the clear: %.40s", text)
			}
		}
		if err := rows.Err(); err != nil || len(sealed) < 3 {
			t.Errorf("%d values: %v", len(sealed), err)
		}
		s.Check(t, apptest.Call{Do: "PUT " + at + "/www.example.org", As: root, JSON: `{"auto_ssl_enabled":true}`, Status: 200}) // drops the cache
		secure()
		later(5 * day)
		tries(8, "by the same account")
		secure()

		certificate, key := i.ca.Issue(s.Clock.Now().Add(day), "www.example.org")
		s.Check(t, apptest.Call{Do: "PUT " + at + "/www.example.org", As: root, Status: 200,
			JSON: fmt.Sprintf(`{"certificate":%q,"key":%q,"auto_ssl_enabled":false}`, certificate, key)})
		later(time.Hour)
		tries(8, "its own")
		secure()
	})
}

// TestOrdersPerProject checks that a project that adds and deletes domains in a loop
// does not use up the orders of the instance.
func TestOrdersPerProject(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		i := newIssuer(t)
		s := apptest.Start(t, src, apptest.Pages, apptest.ACME(i.url+"/dir"))
		s.Clock.Stop()
		i.sites, i.now = s.PagesAddr, s.Clock.Now
		i.set(time.Hour, true)
		id := newProject(t, s, root, `{"path":"site"}`)
		at := fmt.Sprintf("/projects/%d/pages/domains", id)
		const most = 2
		s.Pages.Orders.Requests = most
		for n := range 2 * most {
			s.Check(t, apptest.Call{Do: "POST " + at, As: root, JSON: fmt.Sprintf(`{"domain":"d%d.example.org","auto_ssl_enabled":true}`, n), Status: 201})
		}
		s.Settled(t)
		i.mu.Lock()
		defer i.mu.Unlock()
		if len(i.orders) != most {
			t.Errorf("%d orders, want %d", len(i.orders), most)
		}
	})
}
