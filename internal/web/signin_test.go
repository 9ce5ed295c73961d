package web_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
	"svc/internal/mail/mailtest"
	"svc/internal/setting"
	"svc/internal/user"
)

func TestSignIn(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, _ := s.User(t, "ada")
		b := newBrowser(t, s)
		b.get("/dashboard").leads("/users/sign_in?return_to=%2Fdashboard")
		b.submit("/users/sign_in", "/users/sign_in", "login", "ada", "password", "wrong").want(422, "Invalid login or password.").not("wrong&#34;", `value="wrong"`)
		b.submit("/users/sign_in", "/users/sign_in", "login", "nobody", "password", "wrong").want(422, "Invalid login or password.")
		b.submit("/users/sign_in", "/users/sign_in", "login", "ADA@example.org", "password", password, "return_to", "/explore?x=1").leads("/explore?x=1")
		b.get("/users/sign_in").leads("/")
		b.get("/").want(200, "Your projects", "Create a project")

		// The API accepts the session cookie, and requires the CSRF token for
		// writes.
		b.get("/api/v4/user").want(200, `"username":"ada"`)
		b.post("/api/v4/projects", nil).want(401)

		u, err := s.Users.Get(t.Context(), actor.System(), id, false)
		if err != nil {
			t.Fatal(err)
		}
		if u.SignInCount != 1 || u.CurrentSignInAt == nil || u.CurrentSignInIP != "127.0.0.1" {
			t.Errorf("sign-in is noted as %d at %v from %q", u.SignInCount, u.CurrentSignInAt, u.CurrentSignInIP)
		}
		s.Check(t, apptest.Call{Do: "GET /audit_events?entity_type=Svc::Audit::InstanceScope", As: apptest.RootToken, Status: 200})

		// Another copy of the cookie is invalid after the session has ended.
		thief := b.cookie("_svc_session")
		b.submit("/", "/users/sign_out").leads("/users/sign_in")
		b.get("/users/sign_in").want(200, "You signed out.")
		s.Check(t, apptest.Call{Do: "GET /user", Header: map[string]string{"Cookie": "_svc_session=" + thief}, Status: 401})
		s.Check(t, apptest.Call{Do: "GET //dashboard", Header: map[string]string{"Cookie": "_svc_session=" + thief}, Status: 303})
	})
}

func TestCookie(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t), apptest.ServiceName("forge"))
	s.User(t, "ada")
	find := func(p answer) string {
		for _, c := range p.header.Values("Set-Cookie") {
			if strings.HasPrefix(c, "_forge_session=") {
				return c
			}
		}
		return ""
	}
	b := newBrowser(t, s)
	c := find(b.submit("/users/sign_in", "/users/sign_in", "login", "ada", "password", password).leads("/"))
	for _, want := range []string{"Path=/", "HttpOnly", "SameSite=Lax"} {
		if !strings.Contains(c, want) {
			t.Errorf("the cookie lacks %s: %s", want, c)
		}
	}
	if strings.Contains(c, "Max-Age") || strings.Contains(c, "Secure") {
		t.Errorf("the cookie outlives the browser, or needs HTTPS: %s", c)
	}
	b = newBrowser(t, s)
	c = find(b.submit("/users/sign_in", "/users/sign_in", "login", "ada", "password", password, "remember_me", "1").leads("/"))
	if !strings.Contains(c, "Max-Age") {
		t.Errorf("the cookie ends with the browser: %s", c)
	}
	s.Clock.Move(8 * 24 * time.Hour) // longer than the lifetime of a session, shorter than that of a remembered one
	b.get("/dashboard").want(200)
	s.Clock.Move(15 * 24 * time.Hour)
	b.get("/dashboard").leads("/users/sign_in?return_to=%2Fdashboard")
}

func TestSecureCookie(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t), apptest.ExternalURL("https://forge.example.org"))
	p := newBrowser(t, s).get("/users/sign_in").want(200)
	if !strings.Contains(p.header.Get("Set-Cookie"), "Secure") || p.header.Get("Strict-Transport-Security") == "" {
		t.Errorf("under HTTPS: %v", p.header)
	}
}

// TestFixation signs in with a cookie that another user has planted.
func TestFixation(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t))
	s.User(t, "ada")
	s.User(t, "eve")
	eve := newBrowser(t, s).signIn("eve", password)
	planted := eve.cookie("_svc_session")

	ada := newBrowser(t, s)
	form := url.Values{"login": {"ada"}, "password": {password}, "authenticity_token": {ada.get("/users/sign_in").token()}}
	r := ada.post("/users/sign_in", form)
	r.leads("/")
	if got := ada.cookie("_svc_session"); got == "" || got == planted {
		t.Errorf("the session is %q", got)
	}
	// A cookie that is no session does not become one either.
	other := newBrowser(t, s)
	u, _ := url.Parse(s.URL)
	other.client.Jar.SetCookies(u, cookies("_svc_session", "chosen-by-eve"))
	other.signIn("ada", password)
	if got := other.cookie("_svc_session"); got == "chosen-by-eve" {
		t.Error("the session has the name that somebody chose")
	}
	s.Check(t, apptest.Call{Do: "GET /user", Header: map[string]string{"Cookie": "_svc_session=chosen-by-eve"}, Status: 401})
}

func TestReturnTo(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t))
	s.User(t, "ada")
	for _, evil := range []string{"//evil.example", "https://evil.example/", `/\evil.example`, "javascript:alert(1)", "/\t/evil.example"} {
		b := newBrowser(t, s)
		b.get("/users/sign_in?return_to="+url.QueryEscape(evil)).want(200, `name="return_to" value="/"`)
		b.submit("/users/sign_in", "/users/sign_in", "login", "ada", "password", password, "return_to", evil).leads("/")
	}
}

func TestThrottle(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t))
	s.User(t, "ada")
	s.User(t, "bob")
	b := newBrowser(t, s)
	token := b.get("/users/sign_in").token()
	try := func(login, password string) answer {
		return b.post("/users/sign_in", url.Values{"authenticity_token": {token}, "login": {login}, "password": {password}})
	}
	s.Clock.Stop()
	for range 9 {
		try("ada", "wrong").want(422)
	}
	try("ada", "wrong").want(422)
	p := try("Ada", password).want(429, "Too many requests")
	if p.header.Get("Retry-After") == "" {
		t.Error("it does not say when to try again")
	}
	// By now the account is locked as well, for every address.
	s.Clock.Move(time.Minute)
	try("ada", password).want(422, "Invalid login or password.")
	s.Clock.Move(10 * time.Minute)
	try("ada", password).leads("/")
	newBrowser(t, s).signIn("bob", password)
}

func TestTwoFactor(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		s.User(t, "ada")
		b := newBrowser(t, s).signIn("ada", password)
		// An old session alone is not enough, nor does a wrong code show another secret.
		s.Clock.Move(11 * time.Minute)
		b.submit("/-/user_settings/two_factor", "/-/user_settings/two_factor/start").want(200, "Confirm your password").not("<svg class=\"qr\"")
		b.submit("/-/user_settings/two_factor", "/-/user_settings/two_factor/enable", "code", "000000").leads("/-/user_settings/two_factor")
		b.submit("/-/user_settings/two_factor", "/-/user_settings/two_factor/start", "current_password", "wrong").want(422, "is wrong").not("<svg class=\"qr\"")
		p := b.submit("/-/user_settings/two_factor", "/-/user_settings/two_factor/start", "current_password", password).want(200, "<svg class=\"qr\"")
		_, rest, _ := strings.Cut(p.body, `id="otp-secret">`)
		secret, _, _ := strings.Cut(rest, "<")
		secret = strings.ReplaceAll(secret, " ", "")
		code := func() string {
			t.Helper()
			code, err := totp.GenerateCode(secret, s.Clock.Now())
			if err != nil {
				t.Fatal(err)
			}
			return code
		}
		b.get("/-/user_settings/two_factor").want(200).not(secret)
		p = b.submit("/-/user_settings/two_factor", "/-/user_settings/two_factor/enable", "code", code()).want(200, "Your recovery codes")
		_, rest, _ = strings.Cut(p.body, `<ul class="codes"`)
		_, rest, _ = strings.Cut(rest, "<li>")
		recovery, _, _ := strings.Cut(rest, "<")

		other := newBrowser(t, s)
		half := func() {
			t.Helper()
			other.submit("/users/sign_in", "/users/sign_in", "login", "ada", "password", password, "return_to", "/explore", "remember_me", "1").
				leads("/users/sign_in/code?return_to=%2Fexplore")
			if other.cookie("_svc_session") != "" {
				t.Fatal("half of the way is a session")
			}
		}
		second := func(code string) answer {
			t.Helper()
			return other.submit("/users/sign_in/code", "/users/sign_in/code", "code", code, "return_to", "/explore")
		}
		other.get("/users/sign_in/code").leads("/users/sign_in")
		half()
		other.get("/dashboard").leads("/users/sign_in?return_to=%2Fdashboard")
		second("").want(422)
		second("000000").want(422, "Invalid two-factor code")
		second(code()).want(422) // it was used for the enrollment
		s.Clock.Move(30 * time.Second)
		used := code()
		second(used).leads("/explore")

		other = newBrowser(t, s)
		half()
		second(used).want(422)
		second(recovery).leads("/explore")
		other = newBrowser(t, s)
		half()
		second(recovery).want(422)
		s.Clock.Move(time.Hour)
		second(code()).leads("/users/sign_in?return_to=%2Fexplore") // the attempt has expired

		b.submit("/-/user_settings/two_factor", "/-/user_settings/two_factor/disable", "current_password", "wrong").want(422)
		b.submit("/-/user_settings/two_factor", "/-/user_settings/two_factor/codes", "current_password", password).want(200, "Your recovery codes")
		b.submit("/-/user_settings/two_factor", "/-/user_settings/two_factor/disable", "current_password", password).leads("/-/user_settings/two_factor")
		newBrowser(t, s).signIn("ada", password)
	})
}

func TestForcedChange(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t))
	id, _ := s.User(t, "ada")
	chosen := "chosen by somebody"
	if _, err := s.Users.Update(t.Context(), actor.System(), id, user.Change{Password: &chosen}); err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t, s).signIn("ada", chosen)
	elsewhere := newBrowser(t, s).signIn("ada", chosen)
	const form, action = "/-/user_settings/password/edit", "/-/user_settings/password"
	for _, path := range []string{"/", "/explore", "/projects/new", "/-/user_settings/personal_access_tokens"} {
		b.get(path).leads(form)
	}
	b.get("/api/v4/user").want(403, "has to be changed first")
	b.get(form).want(200, "Set a new password")
	own := "one of her own"
	for _, try := range []struct{ present, password, again, want string }{
		{"wrong", own, own, "Current password is wrong"},
		{chosen, own, "another", "does not match"},
		{chosen, "short", "short", "is too short"},
		{chosen, chosen, chosen, "must differ"},
	} {
		b.submit(form, action, "current_password", try.present, "password", try.password, "password_confirmation", try.again).want(422, try.want)
	}
	b.submit(form, action, "current_password", chosen, "password", own, "password_confirmation", own).leads("/")
	b.get("/").want(200, "Your projects")
	b.get("/api/v4/user").want(200, `"username":"ada"`)
	elsewhere.get("/dashboard").leads("/users/sign_in?return_to=%2Fdashboard")
}

func TestAccountEmails(t *testing.T) {
	t.Parallel()
	apptest.EachMailed(t, func(t *testing.T, s *apptest.Server, post *mailtest.Server) {
		id, _ := s.User(t, "ada")
		b := newBrowser(t, s)

		// Reset the password by email. The page does not reveal who has an account.
		same := "If the account exists, an email was sent."
		for _, login := range []string{"nobody", "nobody@example.org", "ada"} {
			b.submit("/users/password/new", "/users/password", "login", login).leads("/users/sign_in")
			b.get("/users/sign_in").want(200, same)
		}
		email := post.Wait(t, "ada@example.org")
		if email.Subject != "Reset your password" {
			t.Errorf("the subject is %q", email.Subject)
		}
		link := email.Link(t, "reset_password_token")
		session := newBrowser(t, s).signIn("ada", password)
		b.get(link).want(200, "Set a new password")
		_, token, _ := strings.Cut(link, "reset_password_token=")
		b.submit(link, "/users/password/edit", "reset_password_token", token, "password", "short", "password_confirmation", "short").want(422, "is too short")
		b.submit(link, "/users/password/edit", "reset_password_token", token, "password", "a new password", "password_confirmation", "other").want(422, "does not match")
		b.submit(link, "/users/password/edit", "reset_password_token", token, "password", "a new password", "password_confirmation", "a new password").leads("/users/sign_in")
		session.get("/dashboard").leads("/users/sign_in?return_to=%2Fdashboard")
		b.get(link).leads("/users/password/new") // it works once
		b.submit("/users/sign_in", "/users/password/edit", "reset_password_token", token, "password", "a third one", "password_confirmation", "a third one").leads("/users/password/new")
		newBrowser(t, s).signIn("ada", "a new password")

		// A link that has expired.
		b.submit("/users/password/new", "/users/password", "login", "ADA@example.org").leads("/users/sign_in")
		link = post.Wait(t, "ada@example.org").Link(t, "reset_password_token")
		s.Clock.Move(7 * time.Hour)
		b.get(link).leads("/users/password/new")

		// Ten wrong passwords lock the account; its owner can unlock it.
		tried := newBrowser(t, s)
		form := url.Values{"authenticity_token": {tried.get("/users/sign_in").token()}, "login": {"ada"}, "password": {"wrong"}}
		for range 10 {
			tried.post("/users/sign_in", form).want(422)
		}
		link = post.Wait(t, "ada@example.org").Link(t, "unlock_token")
		s.Clock.Move(2 * time.Minute)
		form.Set("password", "a new password")
		tried.post("/users/sign_in", form).want(422)
		_, token, _ = strings.Cut(link, "unlock_token=")
		tried.submit(link, "/users/unlock", "unlock_token", token).leads("/users/sign_in")
		tried.post("/users/sign_in", form).leads("/")

		// Another address becomes the primary one.
		tried.submit("/-/user_settings/emails", "/-/user_settings/emails", "email", "no address").want(422, "is invalid")
		tried.submit("/-/user_settings/emails", "/-/user_settings/emails", "email", "lovelace@example.org").leads("/-/user_settings/emails")
		link = post.Wait(t, "lovelace@example.org").Link(t, "confirmation_token")
		at := tried.get("/-/user_settings/emails").want(200, "lovelace@example.org", "Not confirmed")
		_, rest, _ := strings.Cut(at.body, "/-/user_settings/emails/")
		number, _, _ := strings.Cut(rest, "/")
		tried.submit("/-/user_settings/emails", "/-/user_settings/emails/"+number+"/primary").want(422, "must be confirmed first")
		_, token, _ = strings.Cut(link, "confirmation_token=")
		tried.submit(link, "/users/confirmation", "confirmation_token", token).leads("/-/user_settings/emails")
		tried.submit("/-/user_settings/emails", "/-/user_settings/emails/"+number+"/primary").leads("/-/user_settings/emails")
		u, err := s.Users.Get(t.Context(), actor.System(), id, false)
		if err != nil || u.Email != "lovelace@example.org" {
			t.Errorf("the address is %q: %v", u.Email, err)
		}
	})
}

func TestNewUsers(t *testing.T) {
	t.Parallel()
	post := mailtest.Start(t)
	s := apptest.Start(t, dbtest.SQLite(t), apptest.Mail(post.URL()))
	b := newBrowser(t, s)

	// An administrator creates the account and lets the user choose the password.
	s.Check(t, apptest.Call{Do: "POST /users", As: apptest.RootToken, Status: 201, Form: url.Values{
		"username": {"ada"}, "name": {"Ada"}, "email": {"ada@example.org"}, "reset_password": {"true"}}})
	link := post.Wait(t, "ada@example.org").Link(t, "reset_password_token")
	_, token, _ := strings.Cut(link, "reset_password_token=")
	b.submit(link, "/users/password/edit", "reset_password_token", token, "password", "her own password", "password_confirmation", "her own password").leads("/users/sign_in")
	newBrowser(t, s).signIn("ada@example.org", "her own password").get("/").want(200).not("Confirm your email address")

	// An administrator creates the account with a password: the address must be
	// confirmed.
	s.Check(t, apptest.Call{Do: "POST /users", As: apptest.RootToken, Status: 201, Form: url.Values{
		"username": {"bob"}, "name": {"Bob"}, "email": {"bob@example.org"}, "password": {password}}})
	first := post.Wait(t, "bob@example.org").Link(t, "confirmation_token")
	bob := newBrowser(t, s)
	bob.submit("/users/sign_in", "/users/sign_in", "login", "bob@example.org", "password", password).want(422, "Resend confirmation email")
	bob.submit("/users/sign_in", "/users/sign_in", "login", "bob", "password", password).leads("/")
	bob.submit("/", "/-/user_settings/confirmation").leads("/-/user_settings/emails")
	again := post.Wait(t, "bob@example.org").Link(t, "confirmation_token")
	_, old, _ := strings.Cut(first, "confirmation_token=")
	bob.submit(first, "/users/confirmation", "confirmation_token", old).leads("/users/confirmation/new")
	_, token, _ = strings.Cut(again, "confirmation_token=")
	bob.submit(again, "/users/confirmation", "confirmation_token", token).leads("/-/user_settings/emails")
	bob.get("/").want(200).not("Confirm your email address")

	// The user signs up, which must be enabled first.
	b.get("/users/sign_up").want(404)
	form := []string{"name", "Eve", "username", "eve", "email", "eve@example.org", "password", password, "admin", "true"}
	b.submit("/users/sign_in", "/users/sign_up", form...).want(404)
	if _, err := s.Settings.Update(t.Context(), actor.System(), func(s *setting.Settings) { s.SignUpEnabled = true }); err != nil {
		t.Fatal(err)
	}
	b.submit("/users/sign_up", "/users/sign_up", "name", "", "username", "root", "email", "x", "password", "short").want(422, "is too short", "is invalid")
	b.submit("/users/sign_up", "/users/sign_up", "name", "E", "username", "root", "email", "e@example.org", "password", password).want(422, "has already been taken")
	b.submit("/users/sign_up", "/users/sign_up", form...).leads("/users/sign_in")
	post.Wait(t, "eve@example.org")
	b.submit("/users/sign_in", "/users/sign_in", "login", "eve", "password", password).want(422, "pending approval")
	eve, err := s.Users.Find(t.Context(), actor.System(), "eve")
	if err != nil || eve.Admin {
		t.Fatalf("%+v: %v", eve, err)
	}
	if err := s.Users.Approve(t.Context(), actor.System(), eve.ID); err != nil {
		t.Fatal(err)
	}
	newBrowser(t, s).signIn("eve", password)

	// The address must be confirmed before the first sign-in.
	if _, err := s.Settings.Update(t.Context(), actor.System(), func(s *setting.Settings) { s.SignUpApproval, s.Confirmation = false, setting.ConfirmHard }); err != nil {
		t.Fatal(err)
	}
	b.submit("/users/sign_up", "/users/sign_up", "name", "Fay", "username", "fay", "email", "fay@example.org", "password", password).leads("/users/sign_in")
	b.get("/users/sign_in").want(200, "Confirm your email address before").not("You can sign in now")
	b.submit("/users/sign_in", "/users/sign_in", "login", "fay", "password", password).want(422, "You have to confirm your email address", "/users/confirmation/new")
	link = post.Wait(t, "fay@example.org").Link(t, "confirmation_token")
	_, token, _ = strings.Cut(link, "confirmation_token=")
	b.submit(link, "/users/confirmation", "confirmation_token", token).leads("/users/sign_in")
	newBrowser(t, s).signIn("fay", password)
}

// TestNoMail checks that pages say that the instance cannot send email.
func TestNoMail(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t))
	s.User(t, "ada")
	b := newBrowser(t, s)
	b.get("/users/password/new").want(200, "cannot send email")
	b.submit("/users/password/new", "/users/password", "login", "ada").leads("/users/sign_in")
	b.get("/users/sign_in").want(200, "cannot send email")
}
