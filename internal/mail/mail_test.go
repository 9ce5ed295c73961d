package mail_test

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/mail"
	"svc/internal/mail/mailtest"
	"svc/internal/queue"
	"svc/internal/secret"
	"svc/internal/waittest"
)

type office struct {
	*mail.Sender
	db    *db.DB
	queue *queue.Queue
	log   *bytes.Buffer
}

func open(t *testing.T, d *db.DB, url string) *office {
	t.Helper()
	keys, err := secret.LoadKeyring(filepath.Join(t.TempDir(), "keys"))
	if err != nil {
		t.Fatal(err)
	}
	o := &office{db: d, log: &bytes.Buffer{}}
	o.queue = queue.New(queue.Deps{DB: d, Log: slog.New(slog.DiscardHandler)})
	o.Sender = mail.New(mail.Deps{
		URL: url, Queue: o.queue, Keys: keys, Log: slog.New(slog.NewTextHandler(o.log, nil)), Now: time.Now, Name: "forge", Host: "forge.example.org",
	})
	o.Site = "https://forge.example.org"
	return o
}

func (o *office) post(t *testing.T, l mail.Email) {
	t.Helper()
	if err := o.db.Tx(t.Context(), func(tx *db.Tx) error { return o.Post(t.Context(), tx, l) }); err != nil {
		t.Fatal(err)
	}
}

func (o *office) start(t *testing.T) {
	t.Helper()
	if err := o.queue.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.queue.Stop(t.Context()) })
}

var sample = mail.Email{
	To: "ada@example.org", Name: `Ada "A" <script>`, Subject: "Grüße & more", Lines: []string{"First line with a < in it."},
	Action: "Set a new password", Path: "/users/password/edit?reset_password_token=SECRET", After: []string{"Last line."},
}

func TestDeliver(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		server := mailtest.Start(t)
		o := open(t, d, server.URL())
		o.post(t, sample)

		// The database does not contain the link in plain text.
		var args string
		if err := d.QueryRowContext(t.Context(), `SELECT args FROM river_job WHERE kind = 'mail.deliver'`).Scan(&args); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(args, "SECRET") || strings.Contains(args, "ada@") {
			t.Errorf("the queued email is not encrypted: %s", args)
		}

		o.start(t)
		got := server.Wait(t, "ada@example.org")
		if got.From != "forge@example.org" || got.Subject != sample.Subject {
			t.Errorf("from %q with the subject %q", got.From, got.Subject)
		}
		link := "https://forge.example.org/users/password/edit?reset_password_token=SECRET"
		for _, want := range []string{`Hello Ada "A" <script>,`, "First line with a < in it.", link, "Last line."} {
			if !strings.Contains(got.Text, want) {
				t.Errorf("the text lacks %q: %s", want, got.Text)
			}
		}
		for _, want := range []string{"Hello Ada &#34;A&#34; &lt;script&gt;,", "a &lt; in it", `href="` + link + `"`} {
			if !strings.Contains(got.HTML, want) {
				t.Errorf("the HTML lacks %q: %s", want, got.HTML)
			}
		}
		if id := got.Header.Get("Message-Id"); !strings.HasSuffix(id, "@forge.example.org>") {
			t.Errorf("message id %q", id)
		}
	})
}

// TestUndone posts an email in a transaction that is rolled back.
func TestUndone(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t).Open(t)
	server := mailtest.Start(t)
	o := open(t, d, server.URL())
	_ = d.Tx(t.Context(), func(tx *db.Tx) error {
		if err := o.Post(t.Context(), tx, mail.Email{To: "undone@example.org", Name: "x", Subject: "x"}); err != nil {
			t.Fatal(err)
		}
		return db.ErrNoRows
	})
	o.post(t, sample)
	o.start(t)
	server.Wait(t, "ada@example.org")
	if rest := server.Emails(); len(rest) > 0 {
		t.Errorf("an email was sent although its transaction was rolled back: %+v", rest)
	}
}

// TestRefused lets the server reject an email temporarily and then permanently.
func TestRefused(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t).Open(t)
	server := mailtest.Start(t)
	server.Password = "open-sesame"
	o := open(t, d, server.URL())
	o.TLS = server.Trust
	server.Refuse("550 no such mailbox")
	o.post(t, sample)
	o.start(t)
	waittest.For(t, "an email to an unknown mailbox is canceled", func() bool { return o.state(t) == "cancelled" })

	server.Refuse("451 try later")
	o.post(t, sample)
	if got := server.Wait(t, "ada@example.org"); got.From != "forge@forge.example.org" {
		t.Errorf("from %q", got.From)
	}
}

func (o *office) state(t *testing.T) string {
	t.Helper()
	var state string
	if err := o.db.QueryRowContext(t.Context(), `SELECT state FROM river_job WHERE kind = 'mail.deliver' ORDER BY id LIMIT 1`).Scan(&state); err != nil {
		t.Fatal(err)
	}
	return state
}

// TestNoServer drops emails and logs a warning.
func TestNoServer(t *testing.T) {
	t.Parallel()
	o := open(t, dbtest.SQLite(t).Open(t), "")
	if o.Enabled() {
		t.Error("Enabled is true")
	}
	o.post(t, sample)
	if !strings.Contains(o.log.String(), "no mail server is configured") {
		t.Errorf("the log has no warning: %q", o.log)
	}
	if strings.Contains(o.log.String(), "SECRET") || strings.Contains(o.log.String(), "ada@") {
		t.Errorf("the log contains secrets: %q", o.log)
	}
	var none *mail.Sender
	if none.Enabled() {
		t.Error("Enabled of a nil sender is true")
	}
}
