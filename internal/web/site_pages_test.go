package web_test

import (
	"fmt"
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/pages/cert/certtest"
)

// TestSitePages publishes a site, and manages its domains on pages.
func TestSitePages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		c := newRoleBrowsers(t, s)
		const at = "/g/p/-/pages"
		for role, want := range map[string]int{"outsider": 404, "guest": 403, "developer": 403} {
			for action, pairs := range map[string][]string{
				"": {"pages_access_level", "public"}, "/delete": nil, "/domains": {"domain", "x.example.org"}, "/domains/update": {"do", "auto"}, "/domains/verify": nil, "/domains/delete": nil,
			} {
				if got := c.press(t, role, at+action, pairs...); got.status != want {
					t.Errorf("POST %s as %s: status %d, want %d", at+action, role, got.status, want)
				}
			}
		}
		b := c.as["maintainer"]
		b.t = t
		b.get(at).want(200, "No deployments yet", "http://p-", ".pages.localhost", "No domains", "Access control")
		p, err := s.Projects.Get(t.Context(), actor.System(), "g/p")
		if err != nil {
			t.Fatal(err)
		}
		s.PublishBy(t, p.ID, "pages: {script: [x], publish: dist}\n", map[string]string{"public/index.html": "x"})
		s.Settled(t)
		b.get(at).want(200, "The last deployment failed.", "no directory &#34;dist&#34;")
		s.Publish(t, p.ID, map[string]string{"public/index.html": "x", "public/a.css": "y"})
		b.get(at).want(200, "2 files", "Remove site").not("The last deployment failed")

		b.submit(at, at+"/domains", "domain", "<b>").want(422, "Domain is not a valid name of a host")
		ca := certtest.New(t)
		certificate, key := ca.Issue(s.Clock.Now().AddDate(0, 1, 0), "www.example.org")
		_, other := ca.Issue(s.Clock.Now().AddDate(0, 1, 0), "www.example.org")
		b.submit(at, at+"/domains", "domain", "www.example.org", "certificate", certificate, "key", other).want(422, "Key doesn&#39;t match the certificate", "BEGIN CERTIFICATE").not("PRIVATE KEY")
		b.submit(at, at+"/domains", "domain", "www.example.org", "certificate", certificate, "key", key).want(303)
		b.get(at).want(200, "The domain was added.", "www.example.org", "Certificate for www.example.org").not("PRIVATE KEY")
		b.submit(at, at+"/domains/update", "domain", "www.example.org", "do", "remove").want(303)
		b.get(at).want(200, "No certificate")
		b.submit(at, at+"/domains/update", "domain", "www.example.org", "certificate", certificate).want(303)
		b.get(at).want(200, "Key must be a valid PEM private key")
		b.submit(at, at+"/domains/verify", "domain", "www.example.org").want(303)
		b.get(at).want(200, "Couldn&#39;t verify www.example.org")
		b.submit(at, at, "pages_access_level", "public", "unique_domain", "1", "primary_domain", "www.example.org").want(303)
		b.get(at).want(200, "The Pages settings were saved.", ".pages.localhost")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/pages", p.ID), As: apptest.RootToken, Status: 200, Want: `{"is_unique_domain_enabled":true,"force_https":false,"primary_domain":"www.example.org"}`})
		root := c.as["root"]
		root.t = t
		root.get("/admin/pages_domains").want(200, "www.example.org", "g/p")
		b.submit(at, at+"/delete").want(303)
		b.get(at).want(200, "No deployments yet")
		b.submit(at, at+"/domains/delete", "domain", "www.example.org").want(303)
		b.get(at).want(200, "No domains")
		b.submit(at, at, "pages_access_level", "disabled").want(303)
		b.get(at).want(200, "Disabled").not("New domain")
	})
}
