package app_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
	"svc/internal/user"
)

// TestDatabaseRestarts sends requests to every interface while PostgreSQL is
// unavailable, while it restarts, and afterwards. No request gets a 500 response,
// and no credential is rejected.
func TestDatabaseRestarts(t *testing.T) {
	t.Parallel()
	dbtest.EachProxy(t, func(t *testing.T, p *dbtest.Proxy) {
		s := apptest.Start(t, p.Source, apptest.SSH, apptest.Pages)
		direct := dbtest.Source{URL: p.Direct}.Open(t)
		id, token := s.User(t, "carol")
		signer := signerOf(t)
		line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
		if _, err := s.Users.AddKey(t.Context(), actor.System(), id, user.NewKey{Title: "k", Key: line}); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Do: "POST /projects", As: token, JSON: `{"name":"p","visibility":"public","initialize_with_readme":true}`, Status: 201})
		var runner struct{ Token string }
		s.Check(t, apptest.Call{Do: "POST /user/runners", As: apptest.RootToken, JSON: `{"runner_type":"instance_type"}`, Status: 201}).JSON(t, &runner)
		browser := s.Browser(t)
		asks := awayAsks(t, s, token, runner.Token)
		ask := func(a awayAsk) (int, http.Header, string) {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), a.method, a.url, strings.NewReader(a.body))
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range a.header {
				r.Header.Set(name, value)
			}
			res, err := browser.Do(r)
			if err != nil {
				t.Error(err)
				return 0, nil, ""
			}
			defer res.Body.Close()
			text, _ := io.ReadAll(res.Body)
			return res.StatusCode, res.Header, string(text)
		}
		for _, a := range asks {
			if status, _, body := ask(a); status != a.want {
				t.Errorf("%s: %d, want %d: %.200s", a.url, status, a.want, body)
			}
		}

		p.GoAway()
		for _, a := range asks {
			for range 2 {
				status, header, body := ask(a)
				if status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
					t.Errorf("%s without a database: %d, Retry-After %q: %.200s", a.url, status, header.Get("Retry-After"), body)
				}
			}
		}
		for range 2 {
			out, said, err := overSSH(t, s, signer)
			if err != nil || !strings.Contains(said, "not available") || out != "" {
				t.Errorf("SSH without a database: %v, %q, %q", err, said, out)
			}
			out, said, err = overSSH(t, s, signerOf(t))
			if err != nil || !strings.Contains(said, "not available") || out != "" {
				t.Errorf("SSH with an unknown key, without a database: %v, %q, %q", err, said, out)
			}
		}
		p.ComeBack()

		// Restart the server under load, with each way in which it ends connections.
		var clients sync.WaitGroup
		for range 4 {
			clients.Go(func() {
				for range 25 {
					for _, a := range asks {
						if a.limited {
							continue
						}
						status, _, body := ask(a)
						if status != a.want && status != http.StatusServiceUnavailable {
							t.Errorf("%s while the database restarts: %d: %.200s", a.url, status, body)
						}
					}
				}
			})
		}
		over := make(chan struct{})
		go func() {
			clients.Wait()
			close(over)
		}()
		for n := 0; ; n++ {
			select {
			case <-over:
			default:
				if n%2 == 0 {
					p.GoAway()
				} else {
					_, _ = direct.SQL().ExecContext(t.Context(), endOthers) // may also fail, because its own connection is ended
				}
				_, said, err := overSSH(t, s, signer)
				if err != nil || said != "" && !strings.Contains(said, "not available") {
					t.Errorf("SSH while the database restarts: %v, %q", err, said)
				}
				p.ComeBack()
				continue
			}
			break
		}
		// Each broken connection in a pool may make one more request fail, which
		// detects it.
		left := direct.SQL().Stats().MaxOpenConnections
		for _, a := range asks {
			status, _, body := ask(a)
			for status == http.StatusServiceUnavailable && left > 0 {
				left--
				status, _, body = ask(a)
			}
			if status != a.want {
				t.Errorf("%s afterwards: %d, want %d: %.200s", a.url, status, a.want, body)
			}
		}
		_, said, err := overSSH(t, s, signer)
		for err == nil && strings.Contains(said, "not available") && left > 0 {
			left--
			_, said, err = overSSH(t, s, signer)
		}
		if err != nil || said != "" {
			t.Errorf("SSH afterwards: %v, %q", err, said)
		}
	})
}

// endOthers ends the connections of the server, like a shutdown of PostgreSQL.
const endOthers = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'svc' AND datname = current_database() AND pid != pg_backend_pid()"

// awayAsk is a request that needs the database.
type awayAsk struct {
	method, url, body string
	header            map[string]string
	want              int  // with the database
	limited           bool // rate-limited, so it is sent only a few times
}

func awayAsks(t *testing.T, s *apptest.Server, token, runner string) []awayAsk {
	t.Helper()
	api := map[string]string{"PRIVATE-TOKEN": token}
	as := func(login, password string) map[string]string {
		r, err := http.NewRequest("GET", "/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth(login, password)
		return map[string]string{"Authorization": r.Header.Get("Authorization")}
	}
	json := map[string]string{"Content-Type": "application/json"}
	return []awayAsk{
		{"GET", s.URL + "/api/v4/user", "", api, 200, false},
		{"GET", s.URL + "/api/v4/projects", "", nil, 200, false},
		{"GET", s.URL + "/api/v4/projects/1/repository/branches", "", api, 200, false},
		{"POST", s.URL + "/api/v4/markdown", `{"text":"#1","project":"carol/p"}`, map[string]string{"PRIVATE-TOKEN": token, "Content-Type": "application/json"}, 201, false},
		{"POST", s.URL + "/api/v4/jobs/request", fmt.Sprintf(`{"token":%q,"system_id":"s_1"}`, runner), json, 204, false},
		{"POST", s.URL + "/oauth/token", "grant_type=password&username=carol&password=a+good+password", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, 200, true},
		{"GET", s.URL + "/carol/p", "", nil, 200, false},
		{"GET", s.URL + "/explore", "", nil, 200, false},
		{"GET", s.URL + "/carol/p.git/info/refs?service=git-upload-pack", "", nil, 200, false},
		{"GET", s.URL + "/carol/p.git/info/refs?service=git-receive-pack", "", as("carol", token), 200, false},
		{"GET", "http://carol." + apptest.PagesHost + "/p/", "", nil, 302, false},
	}
}

func signerOf(t *testing.T) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// overSSH starts a fetch. The error is that of the connection and authentication,
// said is the output of the server on stderr.
func overSSH(t *testing.T, s *apptest.Server, signer ssh.Signer) (out, said string, err error) {
	t.Helper()
	c, err := ssh.Dial("tcp", s.SSHAddr(), &ssh.ClientConfig{
		User: "git", Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	})
	if err != nil {
		return "", "", err
	}
	defer c.Close()
	session, err := c.NewSession()
	if err != nil {
		return "", "", err
	}
	var text, screen bytes.Buffer
	session.Stdin, session.Stdout, session.Stderr = strings.NewReader("0000"), &text, &screen
	_ = session.Run("git-upload-pack '/carol/p.git'") // the output is checked instead of the status
	return text.String(), strings.TrimSpace(screen.String()), nil
}
