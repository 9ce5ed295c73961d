package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	netmail "net/mail"
	"regexp"
	"slices"
	"strings"

	"svc/internal/db"
	"svc/internal/mail"
	"svc/internal/project"
)

// The integrations other than chat services.
const (
	PipelinesEmail Kind = "pipelines-email"
	ExternalWiki   Kind = "external-wiki"
)

// maxRecipients is the number of recipients of emails of a project.
const maxRecipients = 30

// webAddress matches the URL of a page.
var webAddress = regexp.MustCompile(`^https?://[^\s/]\S*$`)

// recipientsOf splits a list of email addresses at commas and spaces.
func recipientsOf(text string) []string {
	var list []string
	for _, address := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\r' || r == '\t' }) {
		if !slices.ContainsFunc(list, func(have string) bool { return strings.EqualFold(have, address) }) {
			list = append(list, address)
		}
	}
	return list
}

// recipientsProblem says what is wrong with a list of email addresses.
func recipientsProblem(text string) string {
	list := recipientsOf(text)
	if len(list) > maxRecipients {
		return fmt.Sprintf("can't exceed %d", maxRecipients)
	}
	for _, address := range list {
		if a, err := netmail.ParseAddress(address); err != nil || a.Address != address {
			return "has an invalid email address"
		}
	}
	return ""
}

// mail posts the emails of a delivery, and writes into the delivery what its log
// shows.
func (s *Service) mail(ctx context.Context, h *Hook, d *Delivery) error {
	var p object
	if err := json.Unmarshal([]byte(d.payload), &p); err != nil {
		return err
	}
	m, err := describe(d.Trigger, []byte(d.payload))
	if err != nil {
		return err
	}
	status := map[string]string{"success": "Successful", "failed": "Failed"}[m.status]
	l := mail.Email{
		Subject: fmt.Sprintf("%s | %s pipeline for %s | %s", get(p, "project.path_with_namespace"), status, get(p, "object_attributes.ref"), clip(get(p, "object_attributes.sha"), 8)),
		Lines:   []string{plainMarkup(m.text)}, Action: "View pipeline", Path: strings.TrimPrefix(m.link, s.Site.URL),
		After: []string{"You are receiving this email because a maintainer of the project added your address to its pipeline status emails."},
	}
	for _, line := range m.detail {
		l.Lines = append(l.Lines, plainMarkup(line))
	}
	to := recipientsOf(h.Property("recipients"))
	d.URL, d.requestHeaders, d.body = "mailto:"+strings.Join(to, ","), "", strings.Join(append([]string{l.Subject}, l.Lines...), "\n")
	if !s.Mail.Enabled() {
		return errors.New("no mail server is configured")
	}
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		for _, l.To = range to {
			if err := s.Mail.Post(ctx, tx, l); err != nil {
				return err
			}
		}
		return nil
	})
}

// ExternalWiki returns the address of the external wiki of a project that the caller
// has found; empty without one. That of the project replaces those of its groups.
func (s *Service) ExternalWiki(ctx context.Context, p *project.Project) (string, error) {
	list, err := s.listening(ctx, s.DB, p.ID)
	if err != nil {
		return "", fmt.Errorf("external wiki of project %d: %w", p.ID, err)
	}
	for _, l := range list {
		if l.kind == ExternalWiki && !l.disabled && !overridden(list, l) {
			return l.options.Values["external_wiki_url"], nil
		}
	}
	return "", nil
}
