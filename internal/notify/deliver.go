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

// Delivery is the work of sending one letter.
type Delivery struct {
	EmailID int64 `json:"letter_id"`
}

// Kind implements queue.Work.
func (Delivery) Kind() string { return "notify.deliver" }

// Deliver sends a letter. It may run again after a crash: the state of the
// letter says how far it came. A letter whose sending had begun is not sent
// again, for it may have been taken.
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
		return fmt.Errorf("write letter %d: %w", l.id, err)
	}
	begun := false
	err = s.Mail.Send(ctx, m.id, m.Email, func(ctx context.Context) error {
		ok, err := moveEmail(ctx, s.DB, l.id, closed, sending, s.Now())
		if err == nil && !ok {
			err = errs.Invalid("the letter is sent by somebody else")
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
		s.Log.WarnContext(ctx, "it is not clear whether a letter was sent", "letter", l.id, "error", err)
		return s.end(ctx, l, sending, unclear)
	case begun && errs.Is(err, errs.KindInvalid):
		return s.end(ctx, l, sending, refused)
	case begun:
		return errors.Join(fmt.Errorf("send letter %d: %w", l.id, err), s.end(ctx, l, sending, closed))
	}
	return fmt.Errorf("send letter %d: %w", l.id, err)
}

// close gives a letter that is to be sent, which nothing joins from now on; nil
// when there is nothing to do.
func (s *Service) close(ctx context.Context, id int64) (*email, error) {
	if _, err := moveEmail(ctx, s.DB, id, waiting, closed, s.Now()); err != nil {
		return nil, fmt.Errorf("close letter %d: %w", id, err)
	}
	l, err := findEmail(ctx, s.DB, id)
	if err != nil {
		return nil, fmt.Errorf("find letter %d: %w", id, err)
	}
	switch {
	case l == nil:
		return nil, nil
	case l.state == closed:
		return l, nil
	case l.state == sending:
		s.Log.WarnContext(ctx, "it is not clear whether a letter was sent: the server was stopped meanwhile", "letter", l.id)
		return nil, s.end(ctx, l, sending, unclear)
	}
	return nil, nil
}

func (s *Service) end(ctx context.Context, l *email, from, to state) error {
	// What was sent must be written down, also when the server is stopping.
	if _, err := moveEmail(context.WithoutCancel(ctx), s.DB, l.id, from, to, s.Now()); err != nil {
		return fmt.Errorf("letter %d is %s: %w", l.id, to, err)
	}
	return nil
}

// hidden tells whether there is nothing that the reader may know.
func hidden(err error) bool {
	return errs.Is(err, errs.KindNotFound) || errs.Is(err, errs.KindForbidden) || errs.Is(err, errs.KindUnauthorized)
}

// message is a letter that is ready.
type message struct {
	mail.Email
	id    string
	items []item
}

// compose writes a letter as its reader may know what happened. NotFound and
// Forbidden when there is nothing for him.
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
	acts := make([]*Event, len(items))
	for i, it := range items {
		acts[i] = it.event
	}
	view, err := src.View(ctx, by, acts)
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
	// Of what he may not know, neither the reason nor the sender tells.
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

// recipient gives the account of one who gets letters: NotFound when he gets none.
// Its address is where they go.
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
		After:  []string{"You get this letter because " + best.explanation() + "."},
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

// settingsPath is where somebody says what he wants to be told of.
const settingsPath = "/-/user_settings/notifications"

// listID names the letters of a project for filters: its path, the innermost
// first, below the host.
func listID(p *project.Project, host string) string {
	parts := strings.Split(p.FullPath, "/")
	slices.Reverse(parts)
	return p.FullPath + " <" + strconv.FormatInt(p.ID, 10) + "." + strings.Join(parts, ".") + "." + host + ">"
}

// sender is the name of the one who did all that a letter tells of.
func (s *Service) sender(ctx context.Context, acts []*Event) (string, error) {
	id := acts[0].AuthorID
	for _, a := range acts {
		if a.AuthorID != id {
			return "", nil
		}
	}
	users, err := s.Users.FindAll(ctx, []int64{id})
	if err != nil || users[id] == nil {
		return "", err
	}
	return users[id].Name, nil
}

// subscribeMentioned makes those who were mentioned take part, now that they know of it.
func (s *Service) subscribeMentioned(ctx context.Context, l *email, m *message) error {
	for _, it := range m.items {
		if it.reason == WasMentioned {
			return s.sources[l.kind].Subscribe(ctx, l.userID, l.targetID, true)
		}
	}
	return nil
}
