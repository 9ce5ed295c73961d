package release

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/mail"
	"svc/internal/notify"
	"svc/internal/project"
)

// notificationKind is the target kind of releases.
const notificationKind = "Release"

// notify notifies the members and watchers of a project of a new release, as far as
// their settings ask for it.
func (s *Service) notify(ctx context.Context, tx *db.Tx, by actor.Actor, r *Release) error {
	return s.Notify.Notify(ctx, tx, notify.Event{
		Type: notify.NewRelease, TargetKind: notificationKind, TargetID: r.ID, ProjectID: r.ProjectID, AuthorID: by.ID,
	})
}

// notifications implements notify.Source for releases.
type notifications struct{ s *Service }

// Notifications returns the kind of targets, and the source, of the emails about
// releases.
func (s *Service) Notifications() (string, notify.Source) { return notificationKind, notifications{s} }

// Recipients implements notify.Source: members and watchers of the project.
func (notifications) Recipients(context.Context, *notify.Event) (notify.Recipients, error) {
	return notify.Recipients{}, nil
}

// View implements notify.Source.
func (n notifications) View(ctx context.Context, by actor.Actor, events []*notify.Event) (*notify.View, error) {
	p, err := n.s.readable(ctx, by, project.RefTo(events[0].ProjectID))
	if err != nil {
		return nil, err
	}
	r, err := findByID(ctx, n.s.DB, p.ID, events[0].TargetID)
	if errors.Is(err, db.ErrNoRows) {
		return nil, errs.NotFound("Release")
	}
	if err != nil {
		return nil, fmt.Errorf("release %d: %w", events[0].TargetID, err)
	}
	v := &notify.View{
		Project: p, Subject: "New release: " + r.Name, Noun: "release", Path: "/" + p.FullPath + "/-/releases/" + url.PathEscape(r.Tag),
		Headers: [][2]string{{"Release-Tag", r.Tag}},
	}
	return v, v.Add(events, notify.NewRelease, func(*notify.Event) (*mail.Section, error) {
		head := fmt.Sprintf("A new release %s for %s was published.", r.Name, p.FullPath)
		return n.s.Plan.Section(ctx, by, p, head, r.Description)
	})
}

// Subscribe implements notify.Source. There are no subscriptions to releases.
func (notifications) Subscribe(context.Context, int64, int64, bool) error { return nil }

// CanUnsubscribe implements notify.Source.
func (notifications) CanUnsubscribe() bool { return false }
