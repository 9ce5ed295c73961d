// Package apptest starts a complete server for a test, with a real listener and a
// new database: on SQLite, and also on PostgreSQL if TEST_POSTGRES is set. It checks
// every API response against the OpenAPI document.
package apptest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/api/apitest"
	"svc/internal/app"
	"svc/internal/config"
	"svc/internal/db/dbtest"
	"svc/internal/mail/mailtest"
	"svc/internal/repo/storagemove"
	"svc/internal/secret"
	"svc/internal/user"
)

// RootToken is the token of root on every test server.
const RootToken = "svcpat-root-of-the-test-server"

// RootPassword is the password of root on every test server.
const RootPassword = "correct horse battery"

// Server is a running server.
type Server struct {
	*app.Server
	URL   string
	Clock *Clock

	log    *logBuffer
	oracle *apitest.Oracle
}

// Option changes the configuration before the server starts.
type Option func(*config.Config)

// Beside makes the server another node of the instance of s, which must use
// PostgreSQL. The node gets a copy of the instance key and has the same storages.
func Beside(t testing.TB, s *Server) Option {
	return func(c *config.Config) {
		t.Helper()
		key, err := os.ReadFile(s.KeyFile())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(c.DataDir, filepath.Base(s.KeyFile())), key, 0o600); err != nil {
			t.Fatal(err)
		}
		c.Storages = maps.Clone(s.Config.Storages)
		c.Buckets, c.BlobURL = s.Config.Buckets, s.Config.BlobURL
		for name := range c.Buckets { // each node has its own cache
			c.Storages[name] = filepath.Join(c.DataDir, "git-cache", name)
		}
	}
}

// Storages adds two storages: second, and same, which is another name of the first
// one.
func Storages(c *config.Config) {
	c.Storages["second"] = filepath.Join(c.DataDir, "second")
	c.Storages["same"] = filepath.Join(c.DataDir, "same")
	if err := errors.Join(os.MkdirAll(c.Storages["default"], 0o700), os.Symlink(c.Storages["default"], c.Storages["same"])); err != nil {
		panic(err) // cannot fail in the new directory of the test
	}
}

// Tier sets the tier.
func Tier(name string) Option { return func(c *config.Config) { c.Tier = name } }

// Hosted sets the hosted option, for a server that is operated for other users.
func Hosted(c *config.Config) { c.Hosted = true }

// SSH enables Git over SSH, on a separate port.
func SSH(c *config.Config) { c.SSHAddr = "127.0.0.1:0" }

// SSHPort sets the port of SSH clone URLs.
func SSHPort(port int) Option { return func(c *config.Config) { c.SSHPort = port } }

// ServiceName sets the name of the service.
func ServiceName(name string) Option { return func(c *config.Config) { c.ServiceName = name } }

// CookiePrefix sets the prefix of cookie names.
func CookiePrefix(text string) Option { return func(c *config.Config) { c.CookiePrefix = text } }

// TokenPrefix sets the prefix of tokens.
func TokenPrefix(text string) Option { return func(c *config.Config) { c.TokenPrefix = text } }

// ErrorBackend sets the name of the external error tracking service.
func ErrorBackend(name string) Option { return func(c *config.Config) { c.ErrorBackendName = name } }

// Mail sets the URL of the mail server; see mailtest.
func Mail(url string) Option { return func(c *config.Config) { c.SMTPURL = config.SecretURL(url) } }

// ExternalURL sets the external URL of the server.
func ExternalURL(url string) Option { return func(c *config.Config) { c.ExternalURL = url } }

// ACME sets the ACME server that issues the certificates of Pages sites.
func ACME(directory string) Option {
	return func(c *config.Config) { c.PagesACMEURL = directory }
}

// Provider, GroupSync and Secret are types of the configuration, for the tests of
// interfaces, which do not import config.
type (
	Provider  = config.Provider
	GroupSync = config.GroupSync
	Secret    = config.Secret
)

// Providers sets the identity providers.
func Providers(list ...Provider) Option { return func(c *config.Config) { c.Providers = list } }

// Bucket stores uploads in an S3 store.
func Bucket(url string) Option { return func(c *config.Config) { c.BlobURL = config.SecretURL(url) } }

// Each runs f with a new server on each kind of database.
func Each(t *testing.T, f func(t *testing.T, s *Server), opts ...Option) {
	t.Helper()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) { f(t, Start(t, src, opts...)) })
}

// Options are the external dependencies and limits that a test can replace, for the
// tests of interfaces, which do not import app.
type Options = app.Options

// EachWith is Each with replaced external dependencies, such as the limits of git.
// It ignores fields that every test server sets.
func EachWith(t *testing.T, o Options, f func(t *testing.T, s *Server), opts ...Option) {
	t.Helper()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) { f(t, StartWith(t, src, o, opts...)) })
}

// EachMailed is Each with a separate mail server for each server, so that their
// emails are not mixed.
func EachMailed(t *testing.T, f func(t *testing.T, s *Server, post *mailtest.Server)) {
	t.Helper()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		post := mailtest.Start(t)
		f(t, Start(t, src, Mail(post.URL())), post)
	})
}

// Start starts a server on the database and stops it when the test ends.
func Start(t testing.TB, src dbtest.Source, opts ...Option) *Server {
	t.Helper()
	return StartWith(t, src, app.Options{}, opts...)
}

// BucketStorage adds a second storage, bucket, in the S3 store that also has the
// uploads.
func BucketStorage(url string) Option {
	return func(c *config.Config) {
		c.BlobURL = config.SecretURL(url)
		c.Buckets = map[string]config.SecretURL{"bucket": config.OwnBucket}
		c.Storages["bucket"] = filepath.Join(c.DataDir, "git-cache", "bucket")
	}
}

// InBucket stores repositories in the object store of the server. If the variable
// SVC_TEST_BUCKET is set, all test servers do.
func InBucket(c *config.Config) {
	c.Buckets = map[string]config.SecretURL{"default": config.OwnBucket}
	c.Storages = map[string]string{"default": filepath.Join(c.DataDir, "git-cache")}
}

// StartWith is Start with replaced external dependencies.
func StartWith(t testing.TB, src dbtest.Source, o Options, opts ...Option) *Server {
	t.Helper()
	dir := t.TempDir()
	cfg := config.Config{
		Addr: "127.0.0.1:0", DataDir: dir, Tier: "ultimate", ServiceName: "svc", ErrorBackendName: "errsvc",
		RootPassword: RootPassword, RootToken: RootToken, Runner: "off", LogFormat: "json", LogLevel: slog.LevelDebug,
		DatabaseURL: config.SecretURL(src.URL), ShutdownTimeout: 10 * time.Second,
		CodeIndexFile: 1 << 20, CodeIndexProject: 1 << 30,
		Storages: map[string]string{"default": filepath.Join(dir, "repositories")},
	}
	if os.Getenv("SVC_TEST_BUCKET") != "" {
		InBucket(&cfg)
	}
	for _, o := range opts {
		o(&cfg)
	}
	if src.Path != "" { // the server expects its file in the data directory
		if err := os.Rename(src.Path, filepath.Join(dir, "svc.db")); err != nil {
			t.Fatal(err)
		}
	}
	s := &Server{Clock: &Clock{}, log: &logBuffer{}}
	o.Now = s.Clock.Now
	// With the default cost, hashing passwords would take most of the time of the
	// tests.
	o.Passwords = secret.Params{Memory: 64, Time: 1, Threads: 1}
	// Emails wait only for seconds; see queue.Delay.
	o.EmailDelay = -1
	o.Moves = storagemove.Options{Quiet: 200 * time.Millisecond}
	a, err := app.Open(t.Context(), cfg, app.NewLog(cfg, s.log), o)
	if err != nil {
		t.Fatal(err)
	}
	a.DB.FailNestedWrites(dbtest.InsideTx)
	s.Server, err = a.Listen(t.Context(), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	s.URL = "http://" + s.Addr()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	s.learn(t, cfg)
	t.Cleanup(func() {
		stop()
		switch err := <-done; {
		case err == nil, strings.Contains(err.Error(), "Server closed"):
		case errors.Is(err, context.DeadlineExceeded): // background jobs were interrupted, as on any busy machine
			t.Logf("stop: %v", err)
		default:
			t.Errorf("stop: %v", err)
		}
		if err := a.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if t.Failed() {
			// The debug lines of the queue would hide the cause of a failure.
			lines := strings.Split(s.log.String(), "\n")
			t.Logf("server log:\n%s", strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, `"level":"DEBUG"`) }), "\n"))
		}
	})
	return s
}

// learn reads the OpenAPI document of the server. Generating, parsing and compiling
// it takes longer than most tests, so servers with equal documents share the result
// of the first one.
func (s *Server) learn(t testing.TB, cfg config.Config) {
	t.Helper()
	said := description{cfg.Tier, cfg.Hosted, cfg.ServiceName, cfg.ErrorBackendName}
	learned, _ := oracles.LoadOrStore(said, sync.OnceValues(func() (*apitest.Oracle, error) {
		res, err := http.Get(s.URL + "/api/v4/openapi.json")
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		document, err := io.ReadAll(res.Body)
		if err != nil {
			return nil, err
		}
		return apitest.NewOracle(document)
	}))
	var err error
	if s.oracle, err = learned.(func() (*apitest.Oracle, error))(); err != nil {
		t.Fatal(err)
	}
}

// description has the options that the OpenAPI document depends on, except for the
// URL of the server.
type description struct {
	tier          string
	hosted        bool
	name, backend string
}

var oracles sync.Map // by description: func() (*apitest.Oracle, error)

// User creates a user and a token with the scopes, by default api.
func (s *Server) User(t testing.TB, username string, scopes ...string) (id int64, token string) {
	t.Helper()
	u, err := s.Users.Create(t.Context(), actor.System(), user.NewUser{
		Email: username + "@example.org", Name: username, Username: username, Password: "a good password", SkipConfirmation: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return u.ID, s.Token(t, u.ID, scopes...)
}

// Token creates a personal access token of a user, by default with the scope api.
func (s *Server) Token(t testing.TB, userID int64, scopes ...string) string {
	t.Helper()
	if len(scopes) == 0 {
		scopes = []string{"api"}
	}
	token, err := s.Users.CreateToken(t.Context(), actor.System(), userID, user.NewToken{Name: "test", Scopes: scopes})
	if err != nil {
		t.Fatal(err)
	}
	return token.Secret
}

// Log returns what the server has logged so far.
func (s *Server) Log() string { return s.log.String() }

// Clock is the clock of the server: the real time plus an offset that the test sets.
type Clock struct {
	mu      sync.Mutex
	moved   time.Duration
	stopped time.Time // zero while the clock runs
}

// Now returns the current time of the server.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.stopped
	if now.IsZero() {
		now = time.Now()
	}
	return now.Add(c.moved).UTC()
}

// Move advances the clock.
func (c *Clock) Move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved += d
}

// Stop stops the clock; only Move advances it. Tests of rate limits stop it, because
// a slow machine would otherwise reset the limits.
func (c *Clock) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = time.Now()
}

// logBuffer keeps the log, for tests that fail or that search it.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// String implements fmt.Stringer.
func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
