// Package mailtest is an SMTP server for tests. It accepts all emails and
// returns them to the test.
package mailtest

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/http/httptest"
	"net/mail"
	"net/textproto"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/waittest"
)

// Email is an email that the server received.
type Email struct {
	From, To string // of the envelope
	Header   mail.Header
	Subject  string
	Text     string
	HTML     string
}

// Link returns the first URL in the text that contains part.
func (l Email) Link(t testing.TB, part string) string {
	t.Helper()
	for _, link := range regexp.MustCompile(`https?://\S+`).FindAllString(l.Text, -1) {
		if strings.Contains(link, part) {
			return link
		}
	}
	t.Fatalf("the email has no link with %q: %s", part, l.Text)
	return ""
}

// Server listens on a free port until the test ends.
type Server struct {
	// Password, if set, is required from the user "forge", over TLS only.
	Password string
	// Trust is the TLS configuration of clients that trust this server.
	Trust *tls.Config

	own *tls.Config

	listener net.Listener
	mu       sync.Mutex
	emails   []Email
	refusals []string // replies to the next emails, before any is accepted
	arrived  chan struct{}
	vanish   atomic.Bool
}

// Start starts a server.
func Start(t testing.TB) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewTLSServer(nil) // provides a certificate for tests
	defer web.Close()
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())
	s := &Server{
		listener: l, arrived: make(chan struct{}, 1000),
		Trust: &tls.Config{RootCAs: roots, ServerName: "example.com"}, own: &tls.Config{Certificates: web.TLS.Certificates},
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(c)
		}
	}()
	return s
}

// URL returns the value of smtp_url for this server.
func (s *Server) URL() string {
	if s.Password != "" {
		return "smtp://forge:" + s.Password + "@" + s.listener.Addr().String()
	}
	return "smtp://" + s.listener.Addr().String() + "?from=forge@example.org"
}

// Refuse makes the server reply to the next attempts to deliver an email with these
// lines.
func (s *Server) Refuse(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals = append(s.refusals, lines...)
}

// Vanish makes the server accept the next email and close the connection without a
// reply.
func (s *Server) Vanish() { s.vanish.Store(true) }

// Emails returns all emails that were received.
func (s *Server) Emails() []Email {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Email(nil), s.emails...)
}

// Take returns the emails received since the last call of Take or Wait.
func (s *Server) Take() []Email {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.emails
	s.emails = nil
	return list
}

// Wait returns the next email to an address, and removes it.
func (s *Server) Wait(t testing.TB, to string) Email {
	t.Helper()
	for {
		s.mu.Lock()
		for i, l := range s.emails {
			if l.To == to {
				s.emails = append(s.emails[:i:i], s.emails[i+1:]...)
				s.mu.Unlock()
				return l
			}
		}
		s.mu.Unlock()
		waittest.Receive(t, "an email to "+to, s.arrived)
	}
}

func (s *Server) serve(c net.Conn) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	r := bufio.NewReader(c)
	say := func(format string, args ...any) { fmt.Fprintf(c, format+"\r\n", args...) }
	say("220 mail.example.org ready")
	var l Email
	known, safe := s.Password == "", false
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		verb, rest, _ := strings.Cut(line, " ")
		switch strings.ToUpper(verb) {
		case "EHLO", "HELO":
			switch {
			case s.Password == "":
				say("250-mail.example.org\r\n250 8BITMIME")
			case safe:
				say("250-mail.example.org\r\n250 AUTH PLAIN")
			default:
				say("250-mail.example.org\r\n250 STARTTLS")
			}
		case "STARTTLS":
			say("220 go on")
			c, safe = tls.Server(c, s.own), true
			r = bufio.NewReader(c)
		case "AUTH":
			_, given, _ := strings.Cut(rest, " ")
			text, _ := base64.StdEncoding.DecodeString(given)
			if known = string(text) == "\x00forge\x00"+s.Password; !known {
				say("535 wrong password")
				continue
			}
			say("235 welcome")
		case "MAIL":
			if !known {
				say("530 sign in first")
				continue
			}
			l = Email{From: address(rest)}
			say("250 ok")
		case "RCPT":
			if refusal := s.refusal(); refusal != "" {
				say("%s", refusal)
				continue
			}
			l.To = address(rest)
			say("250 ok")
		case "DATA":
			say("354 go on")
			body, err := textproto.NewReader(r).ReadDotBytes()
			if err != nil {
				return
			}
			if err := l.read(body); err != nil {
				say("554 %v", err)
				continue
			}
			s.mu.Lock()
			s.emails = append(s.emails, l)
			s.mu.Unlock()
			s.arrived <- struct{}{}
			if s.vanish.CompareAndSwap(true, false) {
				return
			}
			say("250 taken")
		case "QUIT":
			say("221 bye")
			return
		default:
			say("250 ok")
		}
	}
}

func (s *Server) refusal() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refusals) == 0 {
		return ""
	}
	first := s.refusals[0]
	s.refusals = s.refusals[1:]
	return first
}

func address(argument string) string {
	_, rest, _ := strings.Cut(argument, "<")
	found, _, _ := strings.Cut(rest, ">")
	return found
}

func (l *Email) read(body []byte) error {
	m, err := mail.ReadMessage(strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	l.Header = m.Header
	if l.Subject, err = new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")); err != nil {
		return err
	}
	_, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	parts := multipart.NewReader(m.Body, params["boundary"])
	for {
		p, err := parts.NextRawPart()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var from io.Reader = p
		if p.Header.Get("Content-Transfer-Encoding") == "quoted-printable" {
			from = quotedprintable.NewReader(p)
		}
		text, err := io.ReadAll(from)
		if err != nil {
			return err
		}
		if strings.HasPrefix(p.Header.Get("Content-Type"), "text/html") {
			l.HTML = string(text)
		} else {
			l.Text = string(text)
		}
	}
}
