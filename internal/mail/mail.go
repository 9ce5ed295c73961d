// Package mail sends emails: it renders them as text and as HTML, keeps them in
// the queue until the mail server has accepted them, and speaks SMTP. Features
// write the texts.
package mail

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net"
	netmail "net/mail"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/queue"
	"svc/internal/secret"
)

// Email is a message to one recipient. Its fields are plain text.
type Email struct {
	To      string // a bare address
	Name    string // of the recipient
	Subject string
	Lines   []string // paragraphs
	// Action is the label of a button that links to Path, which is relative to
	// the external URL. Both or none.
	Action string
	Path   string
	After  []string // paragraphs below the button

	// Sections replace Lines in notification emails, in this order.
	Sections []Section
	// Sender is the user whose name is added to the From header; empty for none.
	Sender string
	// Reply is the message ID that starts the thread of this email; empty for
	// none.
	Reply string
	// Unsubscribe is the path of a page that ends emails of this kind, also by a
	// single POST of a mail program (RFC 8058); empty for none.
	Unsubscribe string
	// Choose is the path of the recipient's notification settings; empty for
	// none.
	Choose  string
	Headers [][2]string // additional headers: name, value
}

// Section is one event in a notification email.
type Section struct {
	Head string        // a sentence
	Text string        // the text of a comment or description
	HTML template.HTML // the same text, sanitized
}

// Deps are the dependencies of a Sender.
type Deps struct {
	// URL is the mail server: smtp://user:password@host:port, which uses
	// STARTTLS if the server offers it and never sends the password without TLS,
	// or smtps:// for implicit TLS. The query may set the sender:
	// ?from=forge@example.org. Empty: nothing is sent.
	URL   string
	Queue *queue.Queue
	Keys  *secret.Keyring
	Log   *slog.Logger
	Now   func() time.Time
	Name  string // of the instance, used as the sender's name
	Host  string // of the sender's address and of message IDs, unless the query of URL sets another
	Site  string // the external URL

	// TLS replaces the TLS configuration in tests.
	TLS *tls.Config
}

// Sender sends emails. A nil Sender sends none.
type Sender struct {
	Deps
	layouts *layouts
}

// tries is the number of delivery attempts. Together they take about a day.
const tries = 14

// Lane is the queue lane of emails. They do not wait for other background jobs,
// and these do not wait for a mail server that does not respond.
const Lane = "mail"

// New returns a Sender and registers its background job.
func New(d Deps) *Sender {
	s := &Sender{Deps: d, layouts: parseLayouts()}
	d.Queue.Lane(Lane, 2)
	queue.Handle(d.Queue, s.deliver, queue.Timeout(time.Minute))
	return s
}

// Enabled reports whether emails are sent at all.
func (s *Sender) Enabled() bool { return s != nil && s.URL != "" }

// Post queues an email that is sent once tx is committed, and retried on
// failure. Without a mail server the email is dropped and a warning is logged.
func (s *Sender) Post(ctx context.Context, tx *db.Tx, l Email) error {
	if !s.Enabled() {
		if s != nil {
			subject := l.Subject
			tx.AfterCommit(func() {
				s.Log.WarnContext(ctx, "email not sent: no mail server is configured (smtp_url)", "subject", subject)
			})
		}
		return nil
	}
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("queue email: %w", err)
	}
	// An email may contain a link that gives access to an account, so it is
	// encrypted in the queue.
	w := delivery{ID: secret.Token(""), Sealed: s.Keys.Seal(text, place)}
	if err := s.Queue.Add(ctx, tx, w, queue.In(Lane), queue.Tries(tries)); err != nil {
		return fmt.Errorf("queue email: %w", err)
	}
	return nil
}

// Ping reports whether the mail server accepts connections. It does not sign in.
func (s *Sender) Ping(ctx context.Context) error {
	server, err := url.Parse(s.URL)
	if err != nil {
		return errors.New("smtp_url is invalid")
	}
	port := server.Port()
	if port == "" {
		port = strconv.Itoa(mail.DefaultPort)
		if server.Scheme == "smtps" {
			port = strconv.Itoa(mail.DefaultPortSSL)
		}
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(server.Hostname(), port))
	if err != nil {
		return fmt.Errorf("connect to the mail server: %w", err)
	}
	return c.Close()
}

// place is the encryption context of queued emails. It is stored.
const place = "mail/letter"

// delivery is the background job that sends one email. The message ID contains its
// ID, so that mail programs recognize an email that is sent twice after a crash.
type delivery struct {
	ID     string `json:"id"`
	Sealed string `json:"letter"`
}

// Kind implements queue.Work.
func (delivery) Kind() string { return "mail.deliver" }

func (s *Sender) deliver(ctx context.Context, w delivery) error {
	text, err := s.Keys.Open(w.Sealed, place)
	if err != nil {
		return errs.Invalid("the queued email cannot be read").Because(err)
	}
	var l Email
	if err := json.Unmarshal(text, &l); err != nil {
		return errs.Invalid("the queued email cannot be read").Because(err)
	}
	// Delivery is at least once: an email that may have been accepted is sent
	// again, because a lost password reset is worse than a duplicate.
	err = s.Send(ctx, w.ID, l, func(context.Context) error { return nil })
	if err != nil {
		return fmt.Errorf("send email: %w", err)
	}
	return nil
}

// ErrUnclear means that the connection was lost before the mail server said
// whether it accepted the email.
var ErrUnclear = errors.New("the connection was lost before the mail server confirmed the email")

// Send sends an email now. The message ID contains id. begin is called when the
// connection is open, before the email is transferred: it may record the attempt,
// and an error aborts it. Invalid if the mail server rejects the email permanently;
// ErrUnclear; any other error means that the email was not sent and can be retried.
func (s *Sender) Send(ctx context.Context, id string, l Email, begin func(context.Context) error) error {
	server, err := url.Parse(s.URL)
	if err != nil {
		return errors.New("smtp_url is invalid") // without its value, which may contain a password
	}
	m, err := s.message(server, id, l)
	if err != nil {
		return err
	}
	client, err := s.client(server)
	if err != nil {
		return err
	}
	if err := client.DialWithContext(ctx); err != nil {
		return err
	}
	defer client.Close()
	if err := begin(ctx); err != nil {
		return err
	}
	err = client.Send(m)
	if err == nil || m.IsDelivered() {
		return nil
	}
	refused, ok := errors.AsType[*mail.SendError](err)
	switch {
	case !ok:
		return fmt.Errorf("%w: %w", ErrUnclear, err)
	case refused.ErrorCode() >= 500:
		s.Log.ErrorContext(ctx, "the mail server rejected an email", "subject", l.Subject, "error", err)
		return errs.Invalid("the mail server rejected the email").Because(err)
	case refused.ErrorCode() == 0 && refused.Reason == mail.ErrSMTPDataClose:
		return fmt.Errorf("%w: %w", ErrUnclear, err)
	}
	return err
}

func (s *Sender) message(server *url.URL, id string, l Email) (*mail.Msg, error) {
	text, html, err := s.layouts.execute(s.Name, s.Site, l)
	if err != nil {
		return nil, err
	}
	m := mail.NewMsg()
	from := server.Query().Get("from")
	if from == "" {
		from = s.Name + "@" + s.Host
	}
	sender := s.Name
	if l.Sender != "" {
		sender = oneLine(l.Sender) + " (" + s.Name + ")"
	}
	if err := m.From(named(sender, from)); err != nil {
		return nil, errs.Invalid("the sender's address is invalid").Because(err)
	}
	if err := m.AddTo(named(oneLine(l.Name), l.To)); err != nil {
		return nil, errs.Invalid("the recipient's address is invalid").Because(err)
	}
	m.Subject(oneLine(l.Subject))
	m.SetDateWithValue(s.Now())
	m.SetMessageIDWithValue(id + "@" + s.Host)
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	if l.Reply != "" && l.Reply != id {
		parent := "<" + l.Reply + "@" + s.Host + ">"
		m.SetGenHeader("In-Reply-To", parent)
		m.SetGenHeader("References", parent)
	}
	if l.Unsubscribe != "" {
		m.SetGenHeader("List-Unsubscribe", "<"+s.Site+l.Unsubscribe+">")
		m.SetGenHeader("List-Unsubscribe-Post", "List-Unsubscribe=One-Click")
	}
	for _, h := range l.Headers {
		m.SetGenHeader(mail.Header(h[0]), oneLine(h[1]))
	}
	m.SetBodyString(mail.TypeTextPlain, text)
	m.AddAlternativeString(mail.TypeTextHTML, html)
	return m, nil
}

// named returns an address with a display name, quoted as needed.
func named(name, address string) string {
	return (&netmail.Address{Name: name, Address: address}).String()
}

// oneLine removes line breaks, so that user input cannot add headers.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func (s *Sender) client(server *url.URL) (*mail.Client, error) {
	opts := []mail.Option{mail.WithTimeout(30 * time.Second), mail.WithHELO(s.Host)}
	if server.Scheme == "smtps" {
		opts = append(opts, mail.WithSSL(), mail.WithPort(mail.DefaultPortSSL))
	} else {
		opts = append(opts, mail.WithTLSPolicy(mail.TLSOpportunistic), mail.WithPort(mail.DefaultPort))
	}
	if port, err := strconv.Atoi(server.Port()); err == nil {
		opts = append(opts, mail.WithPort(port))
	}
	if s.TLS != nil {
		opts = append(opts, mail.WithTLSConfig(s.TLS))
	}
	if server.User != nil {
		password, _ := server.User.Password()
		opts = append(opts, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(server.User.Username()), mail.WithPassword(password))
	}
	client, err := mail.NewClient(server.Hostname(), opts...)
	if err != nil {
		return nil, fmt.Errorf("mail server: %w", err)
	}
	return client, nil
}
