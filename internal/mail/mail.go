// Package mail sends letters: it lays them out as text and as HTML, keeps them
// in the queue until the mail server has taken them, and speaks SMTP.
//
// What a letter says is for the feature that writes it.
package mail

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
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

// Email is a message to one person. Its words are plain text.
type Email struct {
	To      string // a bare address
	Name    string // of the person
	Subject string
	Lines   []string // paragraphs
	// Action is the label of a button that leads to Path, which is below the
	// address of the installation. Both or none.
	Action string
	Path   string
	After  []string // paragraphs below the button

	// Sections are what is told of instead of the lines, one after the other.
	Sections []Section
	// Sender is the person who is named beside the installation; empty for none.
	Sender string
	// Reply is the id of the letter that begins the talk to which this one
	// belongs; empty for none.
	Reply string
	// Unsubscribe is the path of a page that ends letters of this kind, also by
	// a single POST of a mail program; empty for none.
	Unsubscribe string
	// Choose is the path of the page where somebody chooses what letters he gets;
	// empty for none.
	Choose  string
	Headers [][2]string // others, by name
}

// Section is one thing that a letter tells of.
type Section struct {
	Head string        // a sentence
	Text string        // what was written, plain
	HTML template.HTML // the same, safe to show
}

// Deps are what sending needs.
type Deps struct {
	// URL is the mail server: smtp://user:password@host:port, which uses TLS
	// if the server offers it, and without shows the password to nobody; or
	// smtps:// for TLS from the start. The query may name the sender:
	// ?from=forge@example.org. Empty: nothing is sent.
	URL   string
	Queue *queue.Queue
	Keys  *secret.Keyring
	Log   *slog.Logger
	Now   func() time.Time
	Name  string // of the installation, under which it writes
	Host  string // of the sender's address and of message ids, unless the query names another

	// TLS replaces how certificates are checked, for tests.
	TLS *tls.Config
}

// Sender sends letters. A nil Sender sends none.
type Sender struct {
	Deps
	// Site is the address of the installation; it is known once the server
	// listens, and must be set before the queue starts.
	Site string

	layouts *layouts
}

// tries makes a letter wait about a day for a mail server that is away.
const tries = 14

// Lane keeps letters from waiting behind other work, and other work from
// waiting for a mail server that does not answer.
const Lane = "mail"

// New makes a Sender and takes on its background work.
func New(d Deps) *Sender {
	s := &Sender{Deps: d, layouts: parseLayouts()}
	d.Queue.Lane(Lane, 2)
	queue.Handle(d.Queue, s.deliver, queue.Timeout(time.Minute))
	return s
}

// Enabled reports whether letters are sent at all.
func (s *Sender) Enabled() bool { return s != nil && s.URL != "" }

// Post sends a letter once tx is committed, however often it takes. Without a
// mail server the letter is dropped, and the log says so.
func (s *Sender) Post(ctx context.Context, tx *db.Tx, l Email) error {
	if !s.Enabled() {
		if s != nil {
			subject := l.Subject
			tx.AfterCommit(func() {
				s.Log.WarnContext(ctx, "a letter was not sent: there is no mail server (smtp_url)", "subject", subject)
			})
		}
		return nil
	}
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("post letter: %w", err)
	}
	// A letter may hold a link that opens an account: it does not lie in the
	// clear while it waits.
	w := delivery{ID: secret.Token(""), Sealed: s.Keys.Seal(text, place)}
	if err := s.Queue.Add(ctx, tx, w, queue.In(Lane), queue.Tries(tries)); err != nil {
		return fmt.Errorf("post letter: %w", err)
	}
	return nil
}

// place ties sealed letters to their use.
const place = "mail/letter"

// delivery is the work of sending one letter. Its id makes the message id, so
// that a letter sent twice after a crash is known as the same.
type delivery struct {
	ID     string `json:"id"`
	Sealed string `json:"letter"`
}

// Kind implements queue.Work.
func (delivery) Kind() string { return "mail.deliver" }

func (s *Sender) deliver(ctx context.Context, w delivery) error {
	text, err := s.Keys.Open(w.Sealed, place)
	if err != nil {
		return errs.Invalid("the letter can not be read").Because(err)
	}
	var l Email
	if err := json.Unmarshal(text, &l); err != nil {
		return errs.Invalid("the letter can not be read").Because(err)
	}
	// A letter that may have been taken is sent again: better twice than that
	// somebody waits for his new password in vain.
	err = s.Send(ctx, w.ID, l, func(context.Context) error { return nil })
	if err != nil {
		return fmt.Errorf("send letter: %w", err)
	}
	return nil
}

// ErrUnclear says that nobody knows whether the mail server took a letter: it
// went away before it said so.
var ErrUnclear = errors.New("the mail server went away before it said whether it took the letter")

// Send sends a letter now. Its id makes the message id. begin is called when the
// mail server is there and waits for the letter: it may write down that it is on
// its way, and an error of it is given back before anything was sent. Invalid
// when the server will never take the letter; ErrUnclear; any other error means
// that the letter was not sent and may be tried again.
func (s *Sender) Send(ctx context.Context, id string, l Email, begin func(context.Context) error) error {
	server, err := url.Parse(s.URL)
	if err != nil {
		return errors.New("the address of the mail server can not be read") // it may hold a password
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
		s.Log.ErrorContext(ctx, "the mail server refused a letter", "subject", l.Subject, "error", err)
		return errs.Invalid("the mail server refused the letter").Because(err)
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
		return nil, errs.Invalid("the sender's address is none").Because(err)
	}
	if err := m.AddTo(named(oneLine(l.Name), l.To)); err != nil {
		return nil, errs.Invalid("the address is none").Because(err)
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

// named is an address with the name of whose it is, which may hold anything.
func named(name, address string) string {
	return (&netmail.Address{Name: name, Address: address}).String()
}

// oneLine keeps what others wrote from becoming headers of its own.
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
