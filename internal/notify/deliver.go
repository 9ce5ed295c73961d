package notify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/mail"
	"svc/internal/project"
	"svc/internal/user"
)

// Delivery is the background job that sends one email.
type Delivery struct {
	EmailID int64 `json:"letter_id"`
}

// Kind implements queue.Work.
func (Delivery) Kind() string { return "notify.deliver" }

// Deliver sends an email. It may run again after a crash: the state of the email
// shows how far the first run got. Delivery is at most once: an email that the mail
// server may have accepted is not sent again.
func (s *Service) Deliver(ctx context.Context, w Delivery) error {
	l, err := s.close(ctx, w.EmailID)
	if err != nil || l == nil {
		return err
	}
	m, err := s.compose(ctx, l)
	if hidden(err) {
		return s.end(ctx, l, closed, dropped)
	}
	if err != nil {
		return fmt.Errorf("render email %d: %w", l.id, err)
	}
	begun := false
	err = s.Mail.Send(ctx, m.id, m.Email, func(ctx context.Context) error {
		ok, err := moveEmail(ctx, s.DB, l.id, closed, sending, s.Now())
		if err == nil && !ok {
			err = errs.Invalid("the email is being sent by another process")
		}
		begun = err == nil
		return err
	})
	switch {
	case err == nil:
		if err := s.end(ctx, l, sending, sent); err != nil {
			return err
		}
		return s.subscribeMentioned(ctx, l, m)
	case begun && errors.Is(err, mail.ErrUnclear):
		s.Log.WarnContext(ctx, "cannot determine whether an email was sent", "email", l.id, "error", err)
		return s.end(ctx, l, sending, unclear)
	case begun && errs.Is(err, errs.KindInvalid):
		return s.end(ctx, l, sending, refused)
	case begun:
		return errors.Join(fmt.Errorf("send email %d: %w", l.id, err), s.end(ctx, l, sending, closed))
	}
	return fmt.Errorf("send email %d: %w", l.id, err)
}

// close closes an email, so that no more events are added to it, and returns it. It
// returns nil if there is nothing to send.
func (s *Service) close(ctx context.Context, id int64) (*email, error) {
	if _, err := moveEmail(ctx, s.DB, id, waiting, closed, s.Now()); err != nil {
		return nil, fmt.Errorf("close email %d: %w", id, err)
	}
	l, err := findEmail(ctx, s.DB, id)
	if err != nil {
		return nil, fmt.Errorf("find email %d: %w", id, err)
	}
	switch {
	case l == nil:
		return nil, nil
	case l.state == closed:
		return l, nil
	case l.state == sending:
		s.Log.WarnContext(ctx, "cannot determine whether an email was sent: the server stopped during delivery", "email", l.id)
		return nil, s.end(ctx, l, sending, unclear)
	}
	return nil, nil
}

func (s *Service) end(ctx context.Context, l *email, from, to state) error {
	// The result must be recorded even if the server is stopping.
	if _, err := moveEmail(context.WithoutCancel(ctx), s.DB, l.id, from, to, s.Now()); err != nil {
		return fmt.Errorf("set email %d to %s: %w", l.id, to, err)
	}
	return nil
}

// hidden reports whether the recipient has no access to the target.
func hidden(err error) bool {
	return errs.Is(err, errs.KindNotFound) || errs.Is(err, errs.KindForbidden) || errs.Is(err, errs.KindUnauthorized)
}

// message is an email that is ready to be sent.
type message struct {
	mail.Email
	id    string
	items []item
}

// compose renders an email with the events that the recipient may see. It returns
// NotFound or Forbidden if there are none.
func (s *Service) compose(ctx context.Context, l *email) (*message, error) {
	by, err := s.Users.As(ctx, l.userID)
	if err != nil {
		return nil, err
	}
	u, err := s.recipient(ctx, by)
	if err != nil {
		return nil, err
	}
	src := s.sources[l.kind]
	items, err := findItems(ctx, s.DB, l.id)
	if err != nil {
		return nil, err
	}
	if src == nil || len(items) == 0 {
		return nil, errs.NotFound("")
	}
	events := make([]*Event, len(items))
	for i, it := range items {
		events[i] = it.event
	}
	view, err := src.View(ctx, by, events)
	if err != nil {
		return nil, err
	}
	if len(view.Sections) == 0 {
		return nil, errs.NotFound("")
	}
	ok, err := s.Projects.MaySendMail(ctx, view.Project)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errs.NotFound("")
	}
	// Events that the recipient may not see affect neither the reason nor the
	// sender.
	items = slices.DeleteFunc(items, func(it item) bool { return !slices.Contains(view.Events, it.event) })
	m := &message{items: items, id: "notification_" + strconv.FormatInt(l.id, 10)}
	thread := strings.ToLower(l.kind) + "_" + strconv.FormatInt(l.targetID, 10)
	if view.First {
		m.id = thread
	}
	m.Email = s.email(l, u, view, items)
	m.Email.Reply = thread
	m.Email.Sender, err = s.sender(ctx, view.Events)
	return m, err
}

// recipient returns the user of an actor with Email set to their notification email.
// It returns NotFound if the user receives no emails.
func (s *Service) recipient(ctx context.Context, by actor.Actor) (*user.User, error) {
	u, err := s.Users.Self(ctx, by)
	if err != nil {
		return nil, err
	}
	if u.Kind != user.Human || u.State != user.Active || u.ConfirmedAt == nil {
		return nil, errs.NotFound("")
	}
	t, err := s.setting(ctx, s.DB, u.ID, scope{})
	if err != nil {
		return nil, err
	}
	u.Email, err = s.notificationEmail(ctx, u, t.Email)
	return u, err
}

func (s *Service) email(l *email, u *user.User, view *View, items []item) mail.Email {
	best := items[0].reason
	for _, it := range items {
		if slices.Index(reasons(), it.reason) < slices.Index(reasons(), best) {
			best = it.reason
		}
	}
	m := mail.Email{
		To: u.Email, Name: u.Name, Subject: view.Project.Name + " | " + view.Subject, Sections: view.Sections,
		Action: "View the " + view.Noun, Path: view.Path,
		After:  []string{"You are receiving this email because " + best.explanation() + "."},
		Choose: settingsPath,
	}
	if !view.First {
		m.Subject = "Re: " + m.Subject
	}
	if s.sources[l.kind].CanUnsubscribe() {
		m.Unsubscribe = s.unsubscribePath(u.ID, l.kind, l.targetID)
	} else if !view.First {
		m.Subject = strings.TrimPrefix(m.Subject, "Re: ")
	}
	m.Headers = [][2]string{
		{"List-Id", listID(view.Project, s.Mail.Host)},
		{"X-Auto-Response-Suppress", "All"},
		{s.header("Project"), view.Project.Path},
		{s.header("Project-Id"), strconv.FormatInt(view.Project.ID, 10)},
		{s.header("Project-Path"), view.Project.FullPath},
		{s.header("NotificationReason"), string(best)},
	}
	for _, h := range view.Headers {
		m.Headers = append(m.Headers, [2]string{s.header(h[0]), h[1]})
	}
	return m
}

// settingsPath is the path of the page with the user's notification settings.
const settingsPath = "/-/user_settings/notifications"

// listID returns the List-Id header, by which mail clients filter the emails of a
// project. It contains the path of the project in reverse order, like a host name.
func listID(p *project.Project, host string) string {
	parts := strings.Split(p.FullPath, "/")
	slices.Reverse(parts)
	return p.FullPath + " <" + strconv.FormatInt(p.ID, 10) + "." + strings.Join(parts, ".") + "." + host + ">"
}

// sender returns the name of the user who caused all events of an email, or "" if
// there are several users.
func (s *Service) sender(ctx context.Context, events []*Event) (string, error) {
	id := events[0].AuthorID
	for _, e := range events {
		if e.AuthorID != id {
			return "", nil
		}
	}
	users, err := s.Users.FindAll(ctx, []int64{id})
	if err != nil || users[id] == nil {
		return "", err
	}
	return users[id].Name, nil
}

// subscribeMentioned makes a mentioned user a participant after the email about the
// mention was sent.
func (s *Service) subscribeMentioned(ctx context.Context, l *email, m *message) error {
	for _, it := range m.items {
		if it.reason == WasMentioned {
			return s.sources[l.kind].Subscribe(ctx, l.userID, l.targetID, true)
		}
	}
	return nil
}
