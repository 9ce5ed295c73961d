package bench

import (
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/app"
	"svc/internal/config"
	"svc/internal/secret"
	"svc/internal/user"
)

// rootToken is the token of the administrator on all servers.
const rootToken = "svcpat-root-of-the-bench-server"

// serve starts a server with a real listener, on SQLite in a directory of the
// benchmark or on the PostgreSQL database of the URL. It logs a JSON line for each
// request, as by default, but discards the log.
func serve(b testing.TB, databaseURL string, change ...func(*config.Config)) *app.Server {
	b.Helper()
	dir := b.TempDir()
	cfg := config.Config{
		Addr: "127.0.0.1:0", DataDir: dir, Storages: map[string]string{"default": filepath.Join(dir, "repositories")},
		Tier: "ultimate", ServiceName: "svc", ErrorBackendName: "errsvc",
		DatabaseURL: config.SecretURL(databaseURL), RootPassword: "correct horse battery", RootToken: rootToken,
		Runner: "off", LogFormat: "json", LogLevel: slog.LevelInfo, ShutdownTimeout: 10 * time.Second,
	}
	for _, f := range change {
		f(&cfg)
	}
	a, err := app.Open(b.Context(), cfg, app.NewLog(cfg, io.Discard), app.Options{
		Passwords: secret.Params{Memory: 64, Time: 1, Threads: 1}, // sign-ins are not measured
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := a.Close(); err != nil {
			b.Errorf("close: %v", err)
		}
	})
	s, err := a.Listen(b.Context(), io.Discard)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			b.Errorf("stop: %v", err)
		}
	})
	return s
}

// newToken creates a user and returns a token of the user.
func newToken(b testing.TB, s *app.Server, username string) string {
	b.Helper()
	u, err := s.Users.Create(b.Context(), actor.System(), user.NewUser{
		Email: username + "@example.org", Name: username, Username: username, Password: "a good password", SkipConfirmation: true,
		Fields: user.Fields{Provider: "ldapmain", ExternUID: "uid=" + username},
	})
	if err != nil {
		b.Fatal(err)
	}
	token, err := s.Users.CreateToken(b.Context(), actor.System(), u.ID, user.NewToken{Name: "bench", Scopes: []string{"api"}})
	if err != nil {
		b.Fatal(err)
	}
	return token.Secret
}
