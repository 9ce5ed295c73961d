package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"svc/internal/app"
	"svc/internal/app/apptest"
	"svc/internal/config"
	"svc/internal/db/dbtest"
	"svc/internal/waittest"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		s.Table(t, []apptest.Call{
			{Do: "GET //-/liveness", Status: 200, Want: `{"status":"ok"}`},
			{Do: "GET //-/readiness", Status: 200, Want: `{"status":"ok","checks":{"database":"ok","blobs":"<any>"}}`},
			{Do: "GET //-/health", Status: 200},
			{Do: "GET //-/nothing", Status: 404},
			{Do: "GET //", Status: 303, WantHeader: map[string]string{"Location": "/explore"}},
			{Do: "GET //robots.txt", Status: 200},
			{Do: "GET //nothing", Status: 404},
			{Do: "GET //uploads/-/system/user/avatar/1/none.png", Status: 404},
			{Do: "GET //uploads/-/system/user/avatar/1/..%2F..%2Fsvc.db", Status: 404},
		})
		s.Check(t, apptest.Call{Do: "GET /user", As: apptest.RootToken, Status: 200})
		a := s.Check(t, apptest.Call{Do: "GET //-/metrics", Status: 200})
		for _, line := range []string{
			`svc_http_requests_total{method="GET",route="/user",status="200"} 1`, `svc_http_request_seconds_count{method="GET",route="/user"} 1`,
			"svc_db_connections", "svc_build_info", "go_goroutines",
		} {
			if !bytes.Contains(a.Body, []byte(line)) {
				t.Errorf("the metrics have no %s", line)
			}
		}
	})
}

func TestNotReady(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, dbtest.SQLite(t), func(c *config.Config) {
		c.BlobURL = "s3://bucket?endpoint=http://127.0.0.1:1&path_style=true&region=x&access_key=not-shown&secret_key=not-shown"
	})
	// The node is ready without the object store, because all nodes share it, but
	// reports its state.
	waittest.For(t, "the store is checked", func() bool {
		a := s.Check(t, apptest.Call{Do: "GET //-/readiness", Status: 200, Want: `{"status":"ok","checks":{"database":"ok"}}`})
		return bytes.Contains(a.Body, []byte(`"blobs":"failed"`))
	})
	if a := s.Check(t, apptest.Call{Do: "GET //-/metrics", Status: 200}); !bytes.Contains(a.Body, []byte(`svc_dependency_up{dependency="blobs"} 0`)) {
		t.Error("the metrics do not show that the store is unavailable")
	}
	s.Check(t, apptest.Call{Do: "GET //-/liveness", Status: 200})
	if strings.Contains(s.Log(), "not-shown") {
		t.Error("the log shows the credentials of the store")
	}
}

// open opens an app on a data directory, without starting it.
func open(t *testing.T, cfg config.Config) *app.App {
	t.Helper()
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	cfg.Tier, cfg.ServiceName, cfg.ShutdownTimeout = "ultimate", "svc", 2*time.Minute
	a, err := app.Open(t.Context(), cfg, slog.New(slog.DiscardHandler), app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestFirstStart checks that the first start creates the administrator, and
// generates and prints credentials that are not configured, once.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := func() (out string, user map[string]any, token string) {
		t.Helper()
		a := open(t, config.Config{DataDir: dir})
		defer a.Close()
		var told bytes.Buffer
		s, err := a.Listen(t.Context(), &told)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		if _, rest, ok := strings.Cut(told.String(), "token:"); ok {
			token = strings.Fields(rest)[0]
			r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.Addr()+"/api/v4/user", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("PRIVATE-TOKEN", token)
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if err := json.NewDecoder(res.Body).Decode(&user); err != nil {
				t.Fatal(err)
			}
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		return told.String(), user, token
	}
	out, user, _ := start()
	if user["username"] != "root" || user["is_admin"] != true || !strings.Contains(out, "password:") {
		t.Errorf("first start: %s\n%v", out, user)
	}
	if out, _, _ := start(); out != "" {
		t.Errorf("the second start printed: %s", out)
	}
	for _, name := range []string{"svc.db", "secret.key"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

func TestForeignKeyFile(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		first := apptest.Start(t, src)
		a := open(t, config.Config{DataDir: t.TempDir(), DatabaseURL: config.SecretURL(src.URL)})
		defer a.Close()
		if src.URL == "" { // with SQLite, another directory is another database
			return
		}
		if _, err := a.Listen(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "is not the key of this database") {
			t.Errorf("a second node with another key: %v", err)
		}
		key, err := os.ReadFile(first.KeyFile())
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "secret.key"), key, 0o600); err != nil {
			t.Fatal(err)
		}
		b := open(t, config.Config{DataDir: dir, DatabaseURL: config.SecretURL(src.URL)})
		defer b.Close()
		s, err := b.Listen(t.Context(), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	})
}

// TestShutdown checks that the server finishes a request whose body is being sent
// when it is stopped, and refuses new connections.
func TestShutdown(t *testing.T) {
	t.Parallel()
	a := open(t, config.Config{DataDir: t.TempDir(), RootToken: "svcpat-token-of-the-shutdown-test"})
	defer a.Close()
	s, err := a.Listen(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()

	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := `{"message":"still here"}`
	head := "PUT /api/v4/user/status HTTP/1.1\r\nHost: x\r\nPRIVATE-TOKEN: svcpat-token-of-the-shutdown-test\r\nContent-Type: application/json\r\nContent-Length: 24\r\nExpect: 100-continue\r\n\r\n"
	if _, err := io.WriteString(conn, head); err != nil {
		t.Fatal(err)
	}
	const reads = "HTTP/1.1 100 Continue\r\n\r\n" // sent when the handler reads the body
	began := make([]byte, len(reads))
	if _, err := io.ReadFull(conn, began); err != nil || string(began) != reads {
		t.Fatalf("the server answered %q, %v", began, err)
	}
	if _, err := io.WriteString(conn, body[:5]); err != nil {
		t.Fatal(err)
	}
	stop()
	waittest.For(t, "new connections are refused", func() bool {
		c, err := net.Dial("tcp", s.Addr())
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	select {
	case err := <-done:
		t.Fatalf("stopped with a request running: %v", err)
	default:
	}
	if _, err := io.WriteString(conn, body[5:]); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200 ") || !strings.Contains(string(answer), "still here") {
		t.Errorf("answer: %s, %v", answer, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestShutdownDelay checks that requests are served until load balancers have
// noticed that the server is not ready any more.
func TestShutdownDelay(t *testing.T) {
	t.Parallel()
	a := open(t, config.Config{DataDir: t.TempDir(), RootToken: "svcpat-token-of-the-shutdown-test", ShutdownDelay: time.Hour})
	defer a.Close()
	s, err := a.Listen(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	get := func(path string) (int, string) {
		res, err := http.Get("http://" + s.Addr() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
	if status, body := get("/-/readiness"); status != 200 {
		t.Errorf("before: %d %s", status, body)
	}
	stop()
	waittest.For(t, "the server is not ready", func() bool {
		status, body := get("/-/readiness")
		return status == 503 && strings.Contains(body, `"status":"stopping"`)
	})
	if status, body := get("/api/v4/version?private_token=svcpat-token-of-the-shutdown-test"); status != 200 {
		t.Errorf("a request during the delay: %d %s", status, body)
	}
	s.CloseListener() // ends the delay, and is reported
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

func TestTrustedProxies(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		trusted   string
		forwarded string
		want      string
	}{
		"no proxy is trusted":    {"", "203.0.113.9", "127.0.0.1"},
		"another one is":         {"10.0.0.0/8", "203.0.113.9", "127.0.0.1"},
		"the proxy":              {"127.0.0.0/8", "203.0.113.9", "203.0.113.9"},
		"a client that lies":     {"127.0.0.0/8", "198.51.100.1, 203.0.113.9", "203.0.113.9"},
		"two proxies":            {"127.0.0.0/8,10.0.0.0/8", "203.0.113.9, 10.1.1.1", "203.0.113.9"},
		"only proxies":           {"127.0.0.0/8,10.0.0.0/8", "10.2.2.2, 10.1.1.1", "10.2.2.2"},
		"IPv6":                   {"127.0.0.0/8", "2001:db8::1", "2001:db8::1"},
		"nonsense":               {"127.0.0.0/8", "unknown", "127.0.0.1"},
		"no header from a proxy": {"127.0.0.0/8", "", "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apptest.Start(t, dbtest.SQLite(t), func(c *config.Config) {
				for _, text := range strings.FieldsFunc(test.trusted, func(r rune) bool { return r == ',' }) {
					c.TrustedProxies = append(c.TrustedProxies, netip.MustParsePrefix(text))
				}
			})
			header := map[string]string{}
			if test.forwarded != "" {
				header["X-Forwarded-For"] = test.forwarded
			}
			s.Check(t, apptest.Call{Do: "PUT /application/settings?max_login_attempts=4", As: apptest.RootToken, Header: header, Status: 200})
			s.Check(t, apptest.Call{Do: "GET /audit_events?per_page=1", As: apptest.RootToken, Status: 200, Want: `[{"ip_address":"` + test.want + `"}]`})
		})
	}
}

// TestTwoNodes changes data on one node and reads it on the other.
func TestTwoNodes(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		if src.URL == "" {
			return // SQLite supports one node only
		}
		a := apptest.Start(t, src)
		b := apptest.Start(t, src, apptest.Beside(t, a))
		id, token := a.User(t, "alice")
		b.Check(t, apptest.Call{Do: "GET /user", As: token, Status: 200, Want: `{"username":"alice"}`})
		soon := func(s *apptest.Server, c apptest.Call) {
			t.Helper()
			waittest.For(t, c.Name, func() bool { return s.Send(t, c).Status == c.Status })
		}
		a.Check(t, apptest.Call{Do: fmt.Sprintf("POST /users/%d/block", id), As: apptest.RootToken, Status: 201})
		soon(b, apptest.Call{Name: "blocked on the other node", Do: "GET /user", As: token, Status: 403})
		b.Check(t, apptest.Call{Do: fmt.Sprintf("POST /users/%d/unblock", id), As: apptest.RootToken, Status: 201})
		soon(a, apptest.Call{Name: "unblocked on the other node", Do: "GET /user", As: token, Status: 200})
		a.Check(t, apptest.Call{Do: "DELETE /personal_access_tokens/self", As: token, Status: 204})
		soon(b, apptest.Call{Name: "revoked on the other node", Do: "GET /user", As: token, Status: 401})

		value := "sealed on one node"
		a.Check(t, apptest.Call{Do: "POST /admin/ci/variables", As: apptest.RootToken, JSON: `{"key":"A","value":"` + value + `"}`, Status: 201})
		b.Check(t, apptest.Call{Name: "opened on the other", Do: "GET /admin/ci/variables/A", As: apptest.RootToken, Status: 200, Want: `{"value":"` + value + `"}`})
		b.Check(t, apptest.Call{Do: "PUT /application/settings?max_instance_variables=1", As: apptest.RootToken, Status: 200})
		soon(a, apptest.Call{Name: "settings of the other node", Do: "POST /admin/ci/variables", As: apptest.RootToken, JSON: `{"key":"B","value":"x"}`, Status: 400})

		b.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /users/%d", id), As: apptest.RootToken, Status: 204})
		if err := a.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.Check(t, apptest.Call{Do: fmt.Sprintf("GET /users/%d", id), As: apptest.RootToken, Status: 404})
	})
}
