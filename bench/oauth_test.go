package bench

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/app"
	"svc/internal/db"
	"svc/internal/oauth"
)

const (
	tokenRounds   = 10
	tokenRound    = 200 * time.Millisecond
	tokenCallback = "https://app.example/cb"
)

// BenchmarkTokens prints how many requests per second the token endpoint serves:
// refreshes, each of which revokes one pair of tokens and stores another, with and
// without an id_token. They are compared with single transactions on the same
// database, because both wait for the disk.
func BenchmarkTokens(b *testing.B) {
	t := &table{}
	s := serve(b, "")
	id, err := userID(b, s)
	if err != nil {
		b.Fatal(err)
	}
	client, err := s.OAuth.Create(b.Context(), actor.System(), oauth.NewApplication{
		Name: "bench", RedirectURIs: tokenCallback, Scopes: []string{"api", "openid"}, Confidential: true,
	})
	if err != nil {
		b.Fatal(err)
	}
	plain := refreshing(b, s, client, id, "api")
	signed := refreshing(b, s, client, id, "openid api")
	bare := writing(b, s)
	rates := map[string][]float64{}
	loads := map[string]*load{"plain": plain, "signed": signed, "bare": bare}
	for _, l := range loads {
		l.run(b, tokenRound) // prepares statements, creates the key
	}
	for b.Loop() {
		for range tokenRounds {
			for name, l := range loads {
				rates[name] = append(rates[name], l.run(b, tokenRound))
			}
		}
	}
	for _, f := range []struct{ name, load string }{{"POST /oauth/token, refresh", "plain"}, {"POST /oauth/token, refresh with id_token", "signed"}} {
		t.add(b, figure{
			name: f.name, measured: median(rates[f.load]) / median(rates["bare"]), informational: true, unit: "of bare transactions",
			note: fmt.Sprintf("%.0f requests/s, %.0f bare transactions/s", median(rates[f.load]), median(rates["bare"])),
		})
	}
	t.finish(b)
}

func userID(b *testing.B, s *app.Server) (int64, error) {
	newToken(b, s, "somebody")
	var id int64
	err := s.DB.QueryRowContext(b.Context(), `SELECT id FROM users WHERE username = 'somebody'`).Scan(&id)
	return id, err
}

// refreshing returns functions with which each client refreshes the tokens of a
// separate grant.
func refreshing(b *testing.B, s *app.Server, client *oauth.Application, userID int64, scope string) *load {
	b.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	b.Cleanup(transport.CloseIdleConnections)
	web := &http.Client{Transport: transport}
	l := &load{}
	for i := range l.send {
		r, err := s.OAuth.Begin(b.Context(), url.Values{"client_id": {client.UID}, "redirect_uri": {tokenCallback}, "response_type": {"code"}, "scope": {scope}})
		if err != nil {
			b.Fatal(err)
		}
		to, err := s.OAuth.Approve(b.Context(), actor.Actor{ID: userID, Username: "somebody"}, time.Now(), r)
		if err != nil {
			b.Fatal(err)
		}
		back, err := url.Parse(to)
		if err != nil {
			b.Fatal(err)
		}
		form := url.Values{"client_id": {client.UID}, "client_secret": {client.Secret}, "redirect_uri": {tokenCallback}}
		form.Set("grant_type", "authorization_code")
		form.Set("code", back.Query().Get("code"))
		l.send[i] = func() error {
			res, err := web.PostForm("http://"+s.Addr()+"/oauth/token", form)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			var made struct {
				Refresh string `json:"refresh_token"`
			}
			if err := json.NewDecoder(res.Body).Decode(&made); err != nil || res.StatusCode != http.StatusOK {
				return fmt.Errorf("token: %s, %w", res.Status, err)
			}
			form.Set("grant_type", "refresh_token")
			form.Set("refresh_token", made.Refresh)
			return nil
		}
	}
	return l
}

// writing returns functions with which each client updates one row, in a separate
// transaction.
func writing(b *testing.B, s *app.Server) *load {
	b.Helper()
	l := &load{}
	for i := range l.send {
		key := fmt.Sprintf("bench_%d", i)
		if _, err := s.DB.ExecContext(b.Context(), `INSERT INTO settings (key, value) VALUES (?, '')`, key); err != nil {
			b.Fatal(err)
		}
		l.send[i] = func() error {
			return s.DB.Tx(b.Context(), func(tx *db.Tx) error {
				return db.ExecOne(b.Context(), tx, `UPDATE settings SET value = ? WHERE key = ?`, time.Now().String(), key)
			})
		}
	}
	return l
}
