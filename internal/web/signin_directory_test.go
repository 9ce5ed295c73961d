package web_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-ldap/ldap/v3"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/project"
	"svc/internal/user"
	"svc/internal/waittest"
)

// slapd is an LDAP server (OpenLDAP), which tests reach through a TCP listener in
// front of its socket.
type slapd struct {
	t      *testing.T
	addr   string
	socket string
	ca     string // PEM file
	down   atomic.Bool
}

const (
	directoryAdmin    = "cn=admin,dc=corp"
	directoryPassword = "directory admin password"
)

// startSlapd starts a directory with the groups devs and chiefs and without users.
func startSlapd(t *testing.T) *slapd {
	t.Helper()
	dir, err := os.MkdirTemp("", "ldap") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	d := &slapd{t: t, socket: filepath.Join(dir, "s"), ca: filepath.Join(dir, "ca.pem")}
	d.certificate(filepath.Join(dir, "key.pem"))
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	conf := file("slapd.conf", strings.ReplaceAll(`
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
pidfile DIR/pid
TLSCACertificateFile DIR/ca.pem
TLSCertificateFile DIR/ca.pem
TLSCertificateKeyFile DIR/key.pem
database mdb
maxsize 10485760
suffix "dc=corp"
rootdn "`+directoryAdmin+`"
rootpw "`+directoryPassword+`"
directory DIR/data
dbnosync
overlay memberof
access to attrs=userPassword by anonymous auth by * none
access to * by users read by anonymous read
`, "DIR", dir))
	ldif := file("corp.ldif", `
dn: dc=corp
objectClass: dcObject
objectClass: organization
o: Corp
dc: corp

dn: ou=people,dc=corp
objectClass: organizationalUnit
ou: people

dn: ou=groups,dc=corp
objectClass: organizationalUnit
ou: groups
`)
	if out, err := exec.CommandContext(t.Context(), "/usr/sbin/slapadd", "-q", "-f", conf, "-l", ldif).CombinedOutput(); err != nil {
		t.Fatalf("slapadd, run scripts/setup: %v: %s", err, out)
	}
	var out strings.Builder
	cmd := exec.Command("/usr/sbin/slapd", "-d", "0", "-f", conf, "-h", "ldapi://"+url.PathEscape(d.socket))
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(out.String())
		}
	})
	waittest.For(t, "the directory accepts connections", func() bool {
		c, err := net.Dial("unix", d.socket)
		if err != nil {
			return false
		}
		_ = c.Close()
		return true
	})
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listen.Close() })
	d.addr = listen.Addr().String()
	go d.forward(listen)
	return d
}

// forward copies connections of clients to the socket.
func (d *slapd) forward(listen net.Listener) {
	for {
		c, err := listen.Accept()
		if err != nil {
			return
		}
		s, err := net.Dial("unix", d.socket)
		if err != nil || d.down.Load() {
			_ = c.Close()
			continue
		}
		copyTo := func(to, from net.Conn) {
			_, _ = io.Copy(to, from)
			_, _ = to.Close(), from.Close()
		}
		go copyTo(s, c)
		go copyTo(c, s)
	}
}

// certificate writes a certificate for the address, and its key.
func (d *slapd) certificate(keyFile string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		d.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		d.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		d.t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{d.ca: {Type: "CERTIFICATE", Bytes: cert}, keyFile: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			d.t.Fatal(err)
		}
	}
}

// do changes the directory as its administrator.
func (d *slapd) do(change func(*ldap.Conn) error) {
	d.t.Helper()
	c, err := ldap.DialURL("ldapi://" + d.socket)
	if err != nil {
		d.t.Fatal(err)
	}
	defer c.Close()
	if err := c.Bind(directoryAdmin, directoryPassword); err != nil {
		d.t.Fatal(err)
	}
	if err := change(c); err != nil {
		d.t.Fatal(err)
	}
}

func personDN(name string) string { return "uid=" + name + ",ou=people,dc=corp" }

// add adds a user with the password of test users.
func (d *slapd) add(name string) {
	d.t.Helper()
	d.do(func(c *ldap.Conn) error {
		r := ldap.NewAddRequest(personDN(name), nil)
		r.Attribute("objectClass", []string{"inetOrgPerson"})
		r.Attribute("cn", []string{"Person " + name})
		r.Attribute("sn", []string{name})
		r.Attribute("mail", []string{name + "@corp.example"})
		r.Attribute("userPassword", []string{password})
		return c.Add(r)
	})
}

func (d *slapd) remove(dn string) {
	d.t.Helper()
	d.do(func(c *ldap.Conn) error { return c.Del(ldap.NewDelRequest(dn, nil)) })
}

// group creates a group.
func (d *slapd) group(name string, members ...string) {
	d.t.Helper()
	d.do(func(c *ldap.Conn) error {
		r := ldap.NewAddRequest("cn="+name+",ou=groups,dc=corp", nil)
		r.Attribute("objectClass", []string{"groupOfNames"})
		var list []string
		for _, m := range members {
			list = append(list, personDN(m))
		}
		r.Attribute("member", list)
		return c.Add(r)
	})
}

// provider returns the directory as the configuration completes it.
func (d *slapd) provider(name string) apptest.Provider {
	return apptest.Provider{
		Name: name, Label: "Directory " + name, Kind: "ldap", URL: "ldap://" + d.addr, Base: "ou=people,dc=corp", UserFilter: "(objectClass=person)",
		UsernameAttribute: "uid", NameAttribute: "cn", EmailAttribute: "mail", GroupsAttribute: "memberOf", GroupFilter: "(member={dn})", GroupAttribute: "cn",
		AutoCreate: true, TrustEmail: true,
	}
}

func (b *browser) enterDirectory(name, username, password string) answer {
	b.t.Helper()
	return b.submit("/users/auth/"+name+"?return_to=%2Fexplore", "/users/auth/"+name, "username", username, "password", password, "return_to", "/explore")
}

// refusedDirectory expects the general message on the page and the reason in the
// log.
func (b *browser) refusedDirectory(p answer, s *apptest.Server, reason string) {
	b.t.Helper()
	p.want(422, "You could not be signed in. Check username and password, or contact an administrator.")
	b.get("/dashboard").leads("/users/sign_in?return_to=%2Fdashboard")
	if !strings.Contains(s.Log(), reason) {
		b.t.Errorf("the log has no reason %q", reason)
	}
}

// TestSignInWithDirectory signs in with an LDAP server.
func TestSignInWithDirectory(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		d := startSlapd(t)
		for _, name := range []string{"ada", "bob", "eve", "twin"} {
			d.add(name)
		}
		d.group("devs", "ada", "bob", "twin")
		d.group("chiefs", "ada")
		corp := d.provider("ldapcorp")
		corp.RequireApproval = true
		corp.RequiredGroups = []string{"CN=devs, OU=groups,DC=corp"} // another spelling
		corp.AdminGroups = []string{"cn=chiefs,ou=groups,dc=corp"}
		corp.GroupSync = []apptest.GroupSync{{Claim: "cn=devs,ou=groups,dc=corp", Group: "platform", Role: "developer"}}
		s := apptest.Start(t, src, apptest.Providers(corp))
		if _, err := s.Projects.CreateGroup(t.Context(), actor.System(), project.NewGroup{Name: "platform", Path: "platform"}); err != nil {
			t.Fatal(err)
		}
		b := newBrowser(t, s)
		b.get("/users/sign_in").want(200, "Sign in with Directory ldapcorp", `href="/users/auth/ldapcorp?return_to=`)
		for _, c := range []struct{ username, password, reason string }{
			{"ada", "wrong", `user \"ada\": the password is wrong`},
			{"ada", "", "the username or the password is empty"},
			{"nobody", password, `user \"nobody\": the directory has no such user`},
			{"*", password, `user \"*\": the directory has no such user`},
			{"ada)(uid=*", password, `user \"ada)(uid=*\": the directory has no such user`},
			{strings.Repeat("a", 300), password, "is too long"},
			{"eve", password, "is in none of the required groups"},
		} {
			b := newBrowser(t, s)
			b.refusedDirectory(b.enterDirectory("ldapcorp", c.username, c.password), s, c.reason)
		}
		if strings.Contains(s.Log(), password) {
			t.Error("the log has a password")
		}

		// The first sign-in creates an account that waits for approval.
		b.enterDirectory("ldapcorp", "ADA", password).want(422, "pending approval")
		u, err := s.Users.FindIdentity(t.Context(), "ldapcorp", personDN("ada"))
		if err != nil || u.Username != "ada" || u.Name != "Person ada" || u.Email != "ada@corp.example" || u.ConfirmedAt == nil || u.State != user.PendingApproval || u.Admin {
			t.Fatalf("%+v, %v", u, err)
		}
		if err := s.Users.Approve(t.Context(), actor.System(), u.ID); err != nil {
			t.Fatal(err)
		}
		b.enterDirectory("ldapcorp", "ada", password).leads("/explore")
		b.get("/api/v4/user").want(200, `"username":"ada"`, `"is_admin":true`)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /groups/platform/members/%d", u.ID), As: apptest.RootToken, Status: 200, Want: `{"access_level":30}`})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /users/%d", u.ID), As: apptest.RootToken, Status: 200, Want: `{"identities":[{"provider":"ldapcorp","extern_uid":"` + personDN("ada") + `"}]}`})

		// A user with a password links the directory, and can then sign in with
		// both.
		_, _ = s.User(t, "robert")
		r := newBrowser(t, s)
		r.signIn("robert", password)
		r.get("/-/user_settings/identities").want(200, "/-/user_settings/identities/ldapcorp/link")
		link := func(username, password string) answer {
			return r.submit("/-/user_settings/identities/ldapcorp/link", "/-/user_settings/identities/ldapcorp/link", "username", username, "password", password)
		}
		link("bob", "wrong").want(422, "could not be linked")
		link("ada", password).want(422, "could not be linked") // the entry of another user
		// A sign-in that is not recent needs the password of the account as well.
		s.Clock.Move(11 * time.Minute)
		link("bob", password).want(422, `name="current_password"`)
		const at = "/-/user_settings/identities/ldapcorp/link"
		r.submit(at, at, "username", "bob", "password", password, "current_password", "wrong").want(422, "is wrong")
		r.get("/-/user_settings/identities").not(personDN("bob"))
		r.submit(at, at, "username", "bob", "password", password, "current_password", password).leads("/-/user_settings/identities")
		r.get("/-/user_settings/identities").want(200, personDN("bob"))
		r.submit("/", "/users/sign_out").leads("/users/sign_in")
		r.enterDirectory("ldapcorp", "bob", password).leads("/explore")
		r.get("/api/v4/user").want(200, `"username":"robert"`)
		r.get("/users/auth/ldapcorp/callback?code=1&state=2").want(404)
		r.get("/-/user_settings/identities/none/link").want(404)

		// The directory is down.
		d.down.Store(true)
		newBrowser(t, s).enterDirectory("ldapcorp", "ada", password).want(422, "The identity provider does not respond. Try again later.")
		if err := s.SignIn.SyncDirectories(t.Context()); err == nil {
			t.Error("the directory is away, and the synchronization succeeds")
		}
		d.down.Store(false)
		r.get("/api/v4/user").want(200)
	})
}

// TestDirectorySync applies changes in an LDAP server to accounts.
func TestDirectorySync(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		d := startSlapd(t)
		names := []string{"ada", "bob", "cleo", "dan", "eve", "finn"}
		for _, name := range names {
			d.add(name)
		}
		d.group("staff", names...)
		d.group("chiefs", "ada")
		d.group("outsiders", "eve")
		corp := d.provider("ldapcorp")
		corp.StartTLS, corp.CAFile = true, d.ca
		corp.BindDN, corp.BindPassword = directoryAdmin, directoryPassword
		corp.GroupBase = "ou=groups,dc=corp"
		corp.AuditorGroups = []string{"chiefs"}
		corp.RequiredGroups = []string{"staff"}
		corp.GroupSync = []apptest.GroupSync{{Claim: "chiefs", Group: "platform", Role: "maintainer"}}
		testDirectorySync(t, apptest.Start(t, src, apptest.Providers(corp)), d, names)
	})
}

func testDirectorySync(t *testing.T, s *apptest.Server, d *slapd, names []string) {
	if _, err := s.Projects.CreateGroup(t.Context(), actor.System(), project.NewGroup{Name: "platform", Path: "platform"}); err != nil {
		t.Fatal(err)
	}
	users := map[string]*user.User{}
	browsers := map[string]*browser{}
	for _, name := range names {
		b := newBrowser(t, s)
		b.enterDirectory("ldapcorp", name, password).leads("/explore")
		u, err := s.Users.FindIdentity(t.Context(), "ldapcorp", personDN(name))
		if err != nil {
			t.Fatal(err)
		}
		users[name], browsers[name] = u, b
	}
	sync := func() error { t.Helper(); return s.SignIn.SyncDirectories(t.Context()) }
	state := func(name, want string) {
		t.Helper()
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /users/%d", users[name].ID), As: apptest.RootToken, Status: 200, Want: want})
	}
	state("ada", `{"state":"active","is_auditor":true}`)

	// Roles follow the groups without a sign-in.
	d.remove("cn=chiefs,ou=groups,dc=corp")
	d.group("chiefs", "bob")
	if err := sync(); err != nil {
		t.Fatal(err)
	}
	state("ada", `{"state":"active","is_auditor":false}`)
	state("bob", `{"state":"active","is_auditor":true}`)
	s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /groups/platform/members/%d", users["bob"].ID), As: apptest.RootToken, Status: 200, Want: `{"access_level":40}`})
	s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /groups/platform/members/%d", users["ada"].ID), As: apptest.RootToken, Status: 404})

	// A group that was renamed keeps its members.
	s.Check(t, apptest.Call{Do: "PUT /groups/platform", As: apptest.RootToken, JSON: `{"path":"base"}`, Status: 200})
	if err := sync(); err != nil {
		t.Fatal(err)
	}
	s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /groups/base/members/%d", users["bob"].ID), As: apptest.RootToken, Status: 200, Want: `{"access_level":40}`})

	// Users cannot unlink the directory, which would no longer find them.
	eve := browsers["eve"]
	const identities = "/-/user_settings/identities"
	page := eve.get(identities).want(200, "Only an administrator can unlink this account.").not(identities + "/ldapcorp/unlink")
	eve.post(identities+"/ldapcorp/unlink", url.Values{"authenticity_token": {page.token()}}).leads(identities)
	eve.get(identities).want(200, personDN("eve"))

	// A user who was removed from the directory is blocked, and their sessions end.
	// That another user cannot be looked up does not change that.
	at := fmt.Sprintf("PUT /users/%d?provider=ldapcorp&extern_uid=", users["bob"].ID)
	s.Check(t, apptest.Call{Do: at + "bob", As: apptest.RootToken, Status: 200})
	d.remove(personDN("eve"))
	if err := sync(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s.Log(), "a user of a directory is skipped") {
		t.Error("the log does not name the user who cannot be looked up")
	}
	state("bob", `{"state":"active","is_auditor":true}`)
	s.Check(t, apptest.Call{Do: at + url.QueryEscape(personDN("bob")), As: apptest.RootToken, Status: 200})
	state("eve", `{"state":"blocked"}`)
	browsers["eve"].get("/api/v4/user").want(401)
	d.add("eve") // perhaps another person
	newBrowser(t, s).enterDirectory("ldapcorp", "eve", password).want(422, "You could not be signed in.")

	// The same applies to a deactivated user, whose account a sign-in would activate.
	s.Clock.Move(91 * 24 * time.Hour)
	if err := s.Users.Deactivate(t.Context(), actor.System(), users["finn"].ID); err != nil {
		t.Fatal(err)
	}
	if err := sync(); err != nil {
		t.Fatal(err)
	}
	state("finn", `{"state":"deactivated"}`)
	d.remove(personDN("finn"))
	if err := sync(); err != nil {
		t.Fatal(err)
	}
	state("finn", `{"state":"blocked"}`)
	d.add("finn")
	newBrowser(t, s).enterDirectory("ldapcorp", "finn", password).want(422, "You could not be signed in.")

	// If most users are missing, the configuration must be wrong: no user is
	// blocked.
	d.remove("cn=staff,ou=groups,dc=corp")
	if err := sync(); err == nil || !strings.Contains(err.Error(), "4 of 4 users are no longer found; no one was blocked") {
		t.Errorf("all users are gone: %v", err)
	}
	state("ada", `{"state":"active"}`)
	d.group("staff", "ada", "bob", "cleo")
	if err := sync(); err != nil {
		t.Fatal(err)
	}
	state("dan", `{"state":"blocked"}`)
	state("cleo", `{"state":"active"}`)

	// The sign-in with the directory is the first of two factors.
	e, err := s.Users.EnrollTwoFactor(t.Context(), actor.System(), users["cleo"].ID, "svc")
	if err != nil {
		t.Fatal(err)
	}
	recorded := func() (n int) {
		t.Helper()
		events, err := s.Audit.List(t.Context(), actor.System(), audit.Filter{EntityType: audit.UserEntity, EntityID: users["cleo"].ID}, db.Paging{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events.Items {
			if e.Type == "user_signed_in_with_provider" && e.Details.Message == "Signed in with ldapcorp" {
				n++
			}
		}
		return n
	}
	before := recorded()
	b := newBrowser(t, s)
	b.enterDirectory("ldapcorp", "cleo", password).leads("/users/sign_in/code?return_to=%2Fexplore")
	b.get("/dashboard").leads("/users/sign_in?return_to=%2Fdashboard")
	b.submit("/users/sign_in/code", "/users/sign_in/code", "code", e.Codes[0], "return_to", "/explore").leads("/explore")
	if n := recorded() - before; n != 1 {
		t.Errorf("%d audit events of the sign-in, want 1", n)
	}
}
