package web_test

import (
	"context"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/mail/mailtest"
	"svc/internal/oauth"
	"svc/internal/project"
	"svc/internal/user"
)

// forge is the external URL of servers whose users sign in with a provider. It is
// known before they listen, and their cookies are separate from those of the
// provider.
const forge = "http://forge.test"

// forgeBrowser returns a browser that resolves forge.test to the server.
func forgeBrowser(t *testing.T, s *apptest.Server) *browser {
	t.Helper()
	named := *s
	named.URL = forge
	b := newBrowser(t, &named)
	b.client.Transport = &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if strings.HasPrefix(address, "forge.test:") {
			address = s.Addr()
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
	t.Cleanup(b.client.CloseIdleConnections)
	return b
}

func withProviders(list ...apptest.Provider) []apptest.Option {
	return []apptest.Option{apptest.ExternalURL(forge), apptest.Providers(list...)}
}

// oidcProvider returns a provider as the configuration completes it.
func oidcProvider(name, issuer, id, secret string) apptest.Provider {
	return apptest.Provider{
		Name: name, Label: "Provider " + name, Kind: "oidc", Issuer: issuer, ClientID: id, ClientSecret: apptest.Secret(secret),
		Scopes: []string{"openid", "profile", "email"}, UsernameClaim: "preferred_username", GroupsClaim: "groups",
		AutoCreate: true, TrustTwoFactor: true,
	}
}

var leavingLink = regexp.MustCompile(`<a class="button main wide" href="([^"]+)"`)

// leaves returns the URL of the provider to which a page leads.
func (p answer) leaves() *url.URL {
	p.t.Helper()
	m := leavingLink.FindStringSubmatch(p.want(200).body)
	if m == nil {
		p.t.Fatalf("the page leads nowhere: %s", p.body)
	}
	u, err := url.Parse(html.UnescapeString(m[1]))
	if err != nil {
		p.t.Fatal(err)
	}
	return u
}

func (b *browser) startProvider(name string) url.Values {
	b.t.Helper()
	return b.submit("/users/sign_in", "/users/auth/"+name, "return_to", "/explore").leaves().Query()
}

func (b *browser) callback(name string, asked url.Values, pairs ...string) answer {
	b.t.Helper()
	q := url.Values{"code": {"c"}, "state": {asked.Get("state")}}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return b.get("/users/auth/" + name + "/callback?" + q.Encode())
}

// refused expects the general message on the sign-in page and the reason in the log.
func (b *browser) refused(p answer, s *apptest.Server, reason string) {
	b.t.Helper()
	p.leads("/users/sign_in")
	b.get("/users/sign_in").want(200, "You could not be signed in. Try again, or contact an administrator.")
	b.get("/dashboard").leads("/users/sign_in?return_to=%2Fdashboard")
	if !strings.Contains(s.Log(), reason) {
		b.t.Errorf("the log has no reason %q", reason)
	}
}

// TestSignInWithOwnProvider signs in with another svc server.
func TestSignInWithOwnProvider(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		idp := apptest.Start(t, dbtest.SQLite(t))
		ada, _ := idp.User(t, "ada")
		app, err := idp.OAuth.Create(t.Context(), actor.System(), oauth.NewApplication{
			Name: "forge", RedirectURIs: forge + "/users/auth/idp/callback", Scopes: []string{"openid", "profile", "email"}, Confidential: true, Trusted: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"devs", "chiefs"} {
			if _, err := idp.Projects.CreateGroup(t.Context(), actor.System(), project.NewGroup{Name: path, Path: path}); err != nil {
				t.Fatal(err)
			}
		}
		devs := project.Place{Ref: "devs", Group: true}
		if _, err := idp.Projects.AddMember(t.Context(), actor.System(), devs, project.NewMember{UserID: ada, Level: project.Developer}); err != nil {
			t.Fatal(err)
		}
		p := oidcProvider("idp", idp.URL, app.UID, app.Secret)
		p.RequireApproval = true
		p.AuditorGroups = []string{"devs"}
		p.GroupSync = []apptest.GroupSync{{Claim: "devs", Group: "platform", Role: "maintainer"}, {Claim: "chiefs", Group: "platform", Role: "owner"}, {Claim: "devs", Group: "none", Role: "guest"}}
		s := apptest.Start(t, src, withProviders(p)...)
		if _, err := s.Projects.CreateGroup(t.Context(), actor.System(), project.NewGroup{Name: "platform", Path: "platform"}); err != nil {
			t.Fatal(err)
		}
		b := forgeBrowser(t, s)
		b.get("/users/sign_in").want(200, "Sign in with Provider idp")
		enter := func() answer {
			t.Helper()
			at := b.submit("/users/sign_in", "/users/auth/idp", "return_to", "/explore?x=1").leaves().String()
			p := b.get(at)
			if to := p.header.Get("Location"); strings.HasPrefix(to, "/users/sign_in") {
				form := url.Values{"authenticity_token": {b.get(idp.URL + to).want(200).token()}, "login": {"ada"}, "password": {password}}
				b.post(idp.URL+"/users/sign_in", form).leads("/")
				p = b.get(at)
			}
			if !strings.HasPrefix(p.header.Get("Location"), forge+"/users/auth/idp/callback?") {
				t.Fatalf("the provider leads to %s", p.header.Get("Location"))
			}
			return b.get(p.header.Get("Location"))
		}

		// The first sign-in creates an account that waits for approval.
		enter().leads("/users/sign_in")
		b.get("/users/sign_in").want(200, "pending approval")
		u, err := s.Users.Find(t.Context(), actor.System(), "ada")
		if err != nil || u.Email != "ada@example.org" || u.ConfirmedAt == nil || u.State != user.PendingApproval {
			t.Fatalf("%+v, %v", u, err)
		}
		if err := s.Users.Approve(t.Context(), actor.System(), u.ID); err != nil {
			t.Fatal(err)
		}
		enter().leads("/explore?x=1")
		first := b.cookie("_svc_session")
		b.get("/api/v4/user").want(200, `"username":"ada"`, `"provider":"idp"`)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /users/%d", u.ID), As: apptest.RootToken, Status: 200, Want: fmt.Sprintf(`{"is_auditor":true,"identities":[{"provider":"idp","extern_uid":"%d"}]}`, ada)})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /groups/platform/members/%d", u.ID), As: apptest.RootToken, Status: 200, Want: `{"access_level":40}`})
		var kinds []string
		events, err := s.Audit.List(t.Context(), actor.System(), audit.Filter{}, db.Paging{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events.Items {
			kinds = append(kinds, e.Type)
		}
		for _, want := range []string{"user_created", "user_identity_added", "user_signed_in_with_provider", "member_created"} {
			if !strings.Contains(strings.Join(kinds, " "), want) {
				t.Errorf("no audit event %s: %v", want, kinds)
			}
		}

		// There is no password, so the identity is the only way to sign in.
		b.get("/-/user_settings/identities").want(200, "Linked", "You have no password")
		b.submit("/-/user_settings/identities", "/-/user_settings/identities/idp/unlink").leads("/-/user_settings/identities")
		b.get("/-/user_settings/identities").want(200, "only way to sign in")

		// A role that the provider revokes is revoked at the next sign-in.
		if err := idp.Projects.RemoveMember(t.Context(), actor.System(), devs, ada, false); err != nil {
			t.Fatal(err)
		}
		b.submit("/", "/users/sign_out").leads("/users/sign_in")
		enter().leads("/explore?x=1")
		if b.cookie("_svc_session") == first {
			t.Error("the session was not renewed")
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /groups/platform/members/%d", u.ID), As: apptest.RootToken, Status: 404})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /users/%d", u.ID), As: apptest.RootToken, Status: 200, Want: `{"is_auditor":false}`})

		// A blocked user is refused.
		if _, err := s.Users.Block(t.Context(), actor.System(), u.ID); err != nil {
			t.Fatal(err)
		}
		b.get("/dashboard").leads("/users/sign_in?return_to=%2Fdashboard")
		b.refused(enter(), s, "user ada is blocked")
	})
}

// TestProviderDiscovery starts with a provider that is down, then with one whose
// document is too large or has another issuer.
func TestProviderDiscovery(t *testing.T) {
	t.Parallel()
	op := startProvider(t)
	op.down = true
	s := apptest.Start(t, dbtest.SQLite(t), withProviders(oidcProvider("op", op.URL, "client", "hunter2"))...)
	b := forgeBrowser(t, s)
	away := func(reason string) {
		t.Helper()
		b.submit("/users/sign_in", "/users/auth/op").leads("/users/sign_in")
		b.get("/users/sign_in").want(200, "does not respond")
		if !strings.Contains(s.Log(), reason) {
			t.Errorf("the log has no reason %q", reason)
		}
		s.Clock.Move(10 * time.Second)
	}
	away("502")
	op.set(func() { op.down, op.padding = false, 10<<20 })
	away("too large")
	op.set(func() { op.padding, op.discovery = 0, map[string]any{"issuer": "https://other.example"} })
	away("issuer")
	op.set(func() { op.discovery = map[string]any{"token_endpoint": "file:///etc/passwd"} })
	away("not an address")
	// In the local network, only configured hosts are contacted.
	op.set(func() {
		op.discovery = map[string]any{"token_endpoint": strings.Replace(op.URL, "127.0.0.1", "127.0.0.2", 1) + "/token"}
	})
	asked := b.startProvider("op")
	b.refused(b.callback("op", asked), s, "local network")
	s.Clock.Move(2 * time.Hour)
	op.set(func() { op.discovery = nil })
	op.enter(b, "op", map[string]any{"exp": time.Now().Add(5 * time.Hour).Unix()}).leads("/explore")
	// The cached document is used while the provider is down.
	s.Clock.Move(2 * time.Hour)
	op.set(func() { op.discovery = map[string]any{"issuer": "https://other.example"} })
	op.enter(forgeBrowser(t, s), "op", map[string]any{"exp": time.Now().Add(5 * time.Hour).Unix()}).leads("/explore")
}

// TestProviderAccounts checks which account an identity signs in to.
func TestProviderAccounts(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		op := startProvider(t)
		plain := oidcProvider("plain", op.URL, "client", "hunter2")
		plain.TrustTwoFactor = false
		linking := oidcProvider("linking", op.URL, "client", "hunter2")
		linking.LinkByEmail, linking.AdminGroups = true, []string{"chiefs"}
		closed := oidcProvider("closed", op.URL, "client", "hunter2")
		closed.AutoCreate = false
		s := apptest.Start(t, src, withProviders(plain, linking, closed)...)
		ada, _ := s.User(t, "ada")
		person := func(sub, name, email string, more ...any) map[string]any {
			claims := map[string]any{"sub": sub, "preferred_username": name, "email": email}
			for i := 0; i+1 < len(more); i += 2 {
				claims[more[i].(string)] = more[i+1]
			}
			return claims
		}
		// Usernames that are taken or invalid.
		for i, tt := range []struct{ claim, want string }{
			{"ada", "ada1"}, {"ADA", "ADA2"}, {"../../etc/passwd", "etc-passwd"}, {"admin", "admin-user"}, {"12345", "n4"}, {"", "n5"}, {"x@corp.example", "n6"},
			{"évé", "v"}, {"-dash-.git", "dash"},
		} {
			if tt.want == "v" {
				tt.want = "n7"
			}
			b := forgeBrowser(t, s)
			op.enter(b, "plain", person(fmt.Sprint("n", i), tt.claim, fmt.Sprintf("n%d@corp.example", i))).leads("/explore")
			b.get("/api/v4/user").want(200, fmt.Sprintf(`"username":"%s"`, tt.want))
		}
		// Subjects are case-sensitive.
		b := forgeBrowser(t, s)
		b.refused(op.enter(b, "plain", person("N0", "other", "other@corp.example")), s, "Extern UID has already been taken")

		// The address of an existing user is linked only if the provider may link
		// accounts and has verified the address.
		b.refused(op.enter(b, "plain", person("a", "ada", "ada@example.org")), s, "Email has already been taken")
		b.refused(op.enter(b, "linking", person("a", "ada", "ada@example.org", "email_verified", false)), s, "Email has already been taken")
		b.refused(op.enter(b, "linking", person("a", "ada", "ada@example.org", "email_verified", nil)), s, "Email has already been taken")
		b.refused(op.enter(b, "closed", person("a", "ada", "new@example.org")), s, "does not create any")
		root, err := s.Users.Find(t.Context(), actor.System(), "root")
		if err != nil {
			t.Fatal(err)
		}
		b.refused(op.enter(b, "linking", person("r", "root", root.Email)), s, "must link the identity in their settings")
		op.enter(b, "linking", person("a", "ada", "ADA@example.org")).leads("/explore")
		b.get("/api/v4/user").want(200, `"username":"ada"`)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /users/%d", ada), As: apptest.RootToken, Status: 200, Want: `{"identities":[{"provider":"linking","extern_uid":"a"}]}`})
		// Letters that PostgreSQL folds into ASCII: a Kelvin sign is no k.
		kate, _ := s.User(t, "kate")
		op.enter(forgeBrowser(t, s), "linking", person("k", "kelvin", "\u212aate@example.org"))
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /users/%d", kate), As: apptest.RootToken, Status: 200, Want: `{"identities":[]}`})
		other := forgeBrowser(t, s)
		other.refused(op.enter(other, "linking", person("b", "ada", "ada@example.org")), s, "another identity at the provider")

		// A user links and unlinks identities in the settings.
		link := func(b *browser, name, sub string) answer {
			t.Helper()
			asked := b.submit("/-/user_settings/identities", "/-/user_settings/identities/"+name+"/link").leaves().Query()
			op.set(func() {
				op.nonce, op.challenge, op.claims = asked.Get("nonce"), asked.Get("code_challenge"), person(sub, "x", "x@corp.example")
			})
			return b.callback(name, asked)
		}
		link(b, "plain", "p").leads("/-/user_settings/identities")
		b.get("/-/user_settings/identities").want(200, "Your account is linked to Provider plain.")
		link(b, "closed", "c").leads("/-/user_settings/identities")
		eve := forgeBrowser(t, s)
		s.User(t, "eve")
		eve.signIn("eve", password)
		link(eve, "plain", "p").leads("/-/user_settings/identities")
		eve.get("/-/user_settings/identities").want(200, "could not be linked")
		// An attempt to link ends with its session.
		asked := eve.submit("/-/user_settings/identities", "/-/user_settings/identities/plain/link").leaves().Query()
		eve.submit("/", "/users/sign_out").leads("/users/sign_in")
		eve.callback("plain", asked).leads("/-/user_settings/identities")
		if !strings.Contains(s.Log(), "the session that asked to link an identity has ended") {
			t.Error("the log has no reason")
		}
		b.submit("/-/user_settings/identities", "/-/user_settings/identities/closed/unlink").leads("/-/user_settings/identities")
		b.submit("/-/user_settings/identities", "/-/user_settings/identities/closed/unlink").want(404)
		c := forgeBrowser(t, s)
		c.refused(op.enter(c, "closed", person("c", "x", "x@corp.example")), s, "does not create any")

		// Two-factor authentication, which one of the providers satisfies.
		e, err := s.Users.EnrollTwoFactor(t.Context(), actor.System(), ada, "svc")
		if err != nil {
			t.Fatal(err)
		}
		op.enter(c, "plain", person("p", "x", "x@corp.example")).leads("/users/sign_in/code?return_to=%2Fexplore")
		c.get("/dashboard").leads("/users/sign_in?return_to=%2Fdashboard")
		code, err := totp.GenerateCode(e.Secret, s.Clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		c.submit("/users/sign_in/code", "/users/sign_in/code", "code", code, "return_to", "/explore").leads("/explore")
		d := forgeBrowser(t, s)
		op.enter(d, "linking", person("a", "x", "x@corp.example", "groups", []string{"chiefs"})).leads("/explore")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /users/%d", ada), As: apptest.RootToken, Status: 200, Want: `{"is_admin":true}`})
		f := forgeBrowser(t, s)
		op.enter(f, "linking", person("a", "x", "x@corp.example", "groups", "users")).leads("/explore")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /users/%d", ada), As: apptest.RootToken, Status: 200, Want: `{"is_admin":false}`})
	})
}

// TestUnlinkProvider removes the identity of a user who has rights and a membership
// from the provider.
func TestUnlinkProvider(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		op := startProvider(t)
		p := oidcProvider("op", op.URL, "client", "hunter2")
		p.AdminGroups, p.AuditorGroups = []string{"chiefs"}, []string{"chiefs"}
		p.GroupSync = []apptest.GroupSync{{Claim: "developers", Group: "platform", Role: "developer"}}
		s := apptest.Start(t, src, withProviders(p)...)
		for _, path := range []string{"platform", "other"} {
			if _, err := s.Projects.CreateGroup(t.Context(), actor.System(), project.NewGroup{Name: path, Path: path}); err != nil {
				t.Fatal(err)
			}
		}
		robert, _ := s.User(t, "robert")
		other := project.Place{Ref: "other", Group: true}
		if _, err := s.Projects.AddMember(t.Context(), actor.System(), other, project.NewMember{UserID: robert, Level: project.Developer}); err != nil {
			t.Fatal(err)
		}
		b := forgeBrowser(t, s)
		rights := func(admin bool, status int) {
			t.Helper()
			s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /users/%d", robert), As: apptest.RootToken, Status: 200, Want: fmt.Sprintf(`{"is_admin":%t,"is_auditor":%t}`, admin, admin)})
			s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /groups/platform/members/%d", robert), As: apptest.RootToken, Status: status})
			s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /groups/other/members/%d", robert), As: apptest.RootToken, Status: 200})
		}
		const identities = "/-/user_settings/identities"
		linkAndEnter := func() {
			t.Helper()
			b.signIn("robert", password)
			asked := b.submit(identities, identities+"/op/link").leaves().Query()
			claims := map[string]any{"groups": []string{"chiefs", "developers"}}
			op.set(func() { op.nonce, op.challenge, op.claims = asked.Get("nonce"), asked.Get("code_challenge"), claims })
			b.callback("op", asked).leads(identities)
			b.submit("/", "/users/sign_out").leads("/users/sign_in")
			op.enter(b, "op", claims).leads("/explore")
			rights(true, 200)
		}
		linkAndEnter()
		b.submit(identities, identities+"/op/unlink").leads(identities)
		b.get(identities).want(200, "The account was unlinked.")
		rights(false, 404)
		b.submit("/", "/users/sign_out").leads("/users/sign_in")

		linkAndEnter()
		remove := fmt.Sprintf("DELETE /users/%d/identities/op", robert)
		s.Check(t, apptest.Call{Do: remove, As: apptest.RootToken, Status: 204})
		rights(false, 404)
		s.Check(t, apptest.Call{Do: remove, As: apptest.RootToken, Status: 404})

		// An administrator links and unlinks accounts on the page of the user.
		root, page := newBrowser(t, s).signIn("root", apptest.RootPassword), fmt.Sprintf("/admin/users/%d", robert)
		root.submit(page, page+"/identities", "provider", "other", "extern_uid", "u9").leads(page)
		root.get(page).want(200, "Select a provider that is not linked", "Provider op")
		root.submit(page, page+"/identities", "provider", "op", "extern_uid", "u9").leads(page)
		root.get(page).want(200, "The account was linked.", "u9").not(`name="extern_uid"`)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /users/%d", robert), As: apptest.RootToken, Status: 200, Want: `{"identities":[{"provider":"op","extern_uid":"u9"}]}`})
		root.submit(page, page+"/identities/unlink", "provider", "op").leads(page)
		root.get(page).want(200, "The account was unlinked.", `name="extern_uid"`)
	})
}

// TestGroupsElsewhere signs in with an answer that has a reference instead of the groups.
func TestGroupsElsewhere(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		op := startProvider(t)
		p := oidcProvider("op", op.URL, "client", "hunter2")
		p.AuditorGroups = []string{"auditors"}
		p.GroupSync = []apptest.GroupSync{{Claim: "developers", Group: "platform", Role: "developer"}}
		s := apptest.Start(t, src, withProviders(p)...)
		if _, err := s.Projects.CreateGroup(t.Context(), actor.System(), project.NewGroup{Name: "platform", Path: "platform"}); err != nil {
			t.Fatal(err)
		}
		op.enter(forgeBrowser(t, s), "op", map[string]any{"groups": []string{"developers", "auditors"}}).leads("/explore")
		u, err := s.Users.FindIdentity(t.Context(), "op", "u1")
		if err != nil {
			t.Fatal(err)
		}
		b := forgeBrowser(t, s)
		more := map[string]any{
			"_claim_names":   map[string]any{"groups": "src1"},
			"_claim_sources": map[string]any{"src1": map[string]any{"endpoint": "https://graph.example/groups"}},
		}
		b.refused(op.enter(b, "op", more), s, "the provider does not list all groups")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /users/%d", u.ID), As: apptest.RootToken, Status: 200, Want: `{"is_auditor":true}`})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /groups/platform/members/%d", u.ID), As: apptest.RootToken, Status: 200, Want: `{"access_level":30}`})
	})
}

// TestConfirmSelf links a provider and changes the primary email address in sessions
// that are older than ten minutes.
func TestConfirmSelf(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		post := mailtest.Start(t)
		op := startProvider(t)
		s := apptest.Start(t, src, append(withProviders(oidcProvider("op", op.URL, "client", "hunter2"), oidcProvider("second", op.URL, "client", "hunter2")), apptest.Mail(post.URL()))...)
		ada, _ := s.User(t, "ada")
		const identities, emails = "/-/user_settings/identities", "/-/user_settings/emails"
		links := func(b *browser, name, sub string, pairs ...string) {
			t.Helper()
			asked := b.submit(identities, identities+"/"+name+"/link", pairs...).leaves().Query()
			op.set(func() {
				op.nonce, op.challenge = asked.Get("nonce"), asked.Get("code_challenge")
				op.claims = map[string]any{"sub": sub, "exp": time.Now().Add(5 * time.Hour).Unix()}
			})
			b.callback(name, asked).leads(identities)
			b.get(identities).want(200, "Your account is linked to Provider "+name+".")
		}

		b := forgeBrowser(t, s)
		b.signIn("ada", password)
		s.Clock.Move(11 * time.Minute)
		b.submit(identities, identities+"/op/link").want(200, "Confirm your password", `action="/-/user_settings/identities/op/link"`)
		b.submit(identities, identities+"/op/link", "current_password", "wrong").want(422, "is wrong")
		links(b, "op", "a", "current_password", password)
		b.submit("/", "/users/sign_out").leads("/users/sign_in")
		b.signIn("ada", password)
		links(b, "second", "a")

		e, err := s.Users.AddEmail(t.Context(), actor.System(), ada, user.NewEmail{Address: "lovelace@example.org", SkipConfirmation: true})
		if err != nil {
			t.Fatal(err)
		}
		s.Clock.Move(11 * time.Minute)
		primary := fmt.Sprintf("%s/%d/primary", emails, e.ID)
		b.submit(emails, primary).want(200, "Confirm your password")
		b.submit(emails, primary, "current_password", "wrong").want(422, "is wrong")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /users/%d", ada), As: apptest.RootToken, Status: 200, Want: `{"email":"ada@example.org"}`})
		b.submit(emails, primary, "current_password", password).leads(emails)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /users/%d", ada), As: apptest.RootToken, Status: 200, Want: `{"email":"lovelace@example.org"}`})
		if m := post.Wait(t, "ada@example.org"); !strings.Contains(m.Text, "changed to lovelace@example.org") {
			t.Errorf("the email to the former address says %q", m.Text)
		}

		// A user without a password signs in again.
		c := forgeBrowser(t, s)
		claims := map[string]any{"sub": "c", "preferred_username": "cleo", "email": "cleo@corp.example", "exp": time.Now().Add(5 * time.Hour).Unix()}
		op.enter(c, "op", claims).leads("/explore")
		s.Clock.Move(11 * time.Minute)
		c.submit(identities, identities+"/second/link").leads(identities)
		c.get(identities).want(200, "Sign in again first.")
		c.submit("/", "/users/sign_out").leads("/users/sign_in")
		op.enter(c, "op", claims).leads("/explore")
		links(c, "second", "c")
	})
}

// TestPasswordsOff disables the sign-in with passwords.
func TestPasswordsOff(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		op := startProvider(t)
		s := apptest.Start(t, src, withProviders(oidcProvider("op", op.URL, "client", "hunter2"))...)
		s.User(t, "ada")
		const path = "PUT /application/settings"
		off := url.Values{"password_authentication_enabled_for_web": {"false"}, "signup_enabled": {"true"}}
		s.Check(t, apptest.Call{Name: "no administrator is linked", Do: path, As: apptest.RootToken, Form: off, Status: 400})
		b := forgeBrowser(t, s)
		b.signIn("root", apptest.RootPassword)
		asked := b.submit("/-/user_settings/identities", "/-/user_settings/identities/op/link").leaves().Query()
		op.set(func() { op.nonce, op.challenge, op.claims = asked.Get("nonce"), asked.Get("code_challenge"), nil })
		b.callback("op", asked).leads("/-/user_settings/identities")
		s.Check(t, apptest.Call{Do: path, As: apptest.RootToken, Form: off, Status: 200, Want: `{"password_authentication_enabled_for_web":false}`})
		b.submit("/-/user_settings/identities", "/-/user_settings/identities/op/unlink").leads("/-/user_settings/identities")
		b.get("/-/user_settings/identities").want(200, "only way to sign in")

		c := forgeBrowser(t, s)
		c.get("/users/sign_in").want(200, "Sign in with Provider op").not(`name="password"`, "Sign up")
		c.submit("/users/sign_in", "/users/sign_in", "login", "ada", "password", password).want(422, "Password authentication is disabled")
		c.get("/users/sign_up").want(404)
		s.Check(t, apptest.Call{Do: "POST //oauth/token", Form: url.Values{"grant_type": {"password"}, "username": {"ada"}, "password": {password}}, Status: 400})
		git := func(status int) {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/ada/none.git/info/refs?service=git-upload-pack", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.SetBasicAuth("ada", password)
			if p := c.send(r); p.status != status {
				t.Errorf("git: %d, want %d: %s", p.status, status, p.body)
			}
		}
		git(404)
		s.Check(t, apptest.Call{Do: path, As: apptest.RootToken, Form: url.Values{"password_authentication_enabled_for_git": {"false"}}, Status: 200})
		git(403)
		op.enter(c, "op", nil).leads("/explore")
		c.get("/api/v4/user").want(200, `"username":"root"`)
	})
}
