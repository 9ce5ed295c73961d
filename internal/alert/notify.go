package alert

import (
	"context"
	"fmt"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/mail"
	"svc/internal/notify"
	"svc/internal/project"
)

// notificationKind is the target kind of alerts: all alerts of a project
// together, so that many alerts become one email.
const notificationKind = "Alerts"

// maxListed limits how many alerts an email lists.
const maxListed = 20

// notify notifies the Maintainers and Owners of a project of new alerts.
func (s *Service) notify(ctx context.Context, tx *db.Tx, projectID int64, ids []int64) error {
	return s.Notify.Notify(ctx, tx, notify.Event{
		Type: notify.NewAlert, TargetKind: notificationKind, TargetID: projectID, ProjectID: projectID,
		Details: notify.Details{After: ids[:min(maxListed, len(ids))], Count: len(ids)},
	})
}

// notifications implements notify.Source for alerts.
type notifications struct{ s *Service }

// Notifications returns the kind of targets, and the source, of the emails about alerts.
func (s *Service) Notifications() (string, notify.Source) { return notificationKind, notifications{s} }

// Recipients implements notify.Source: Maintainers and above are notified,
// depending on their settings.
func (n notifications) Recipients(ctx context.Context, e *notify.Event) (notify.Recipients, error) {
	ids, err := n.s.Projects.MembersFrom(ctx, project.Place{Ref: project.RefTo(e.ProjectID)}, project.Maintainer)
	return notify.Recipients{BySettings: ids, SkipWatchers: true}, err
}

// View implements notify.Source.
func (n notifications) View(ctx context.Context, by actor.Actor, events []*notify.Event) (*notify.View, error) {
	in, err := n.s.watcher(ctx, by, project.RefTo(events[0].ProjectID))
	if err != nil {
		return nil, err
	}
	v := &notify.View{Project: in, Subject: "New alerts", Noun: "alerts", Path: "/" + in.FullPath + "/-/alert_management"}
	first := ""
	err = v.Add(events, "", func(e *notify.Event) (*mail.Section, error) {
		list, err := findAlerts(ctx, n.s.DB, e.After)
		if err != nil || len(list) == 0 {
			return nil, err
		}
		first = list[0].Title
		return n.section(in, list, e.Count), nil
	})
	if len(v.Events) == 1 && v.Events[0].Count == 1 {
		v.Subject = "Alert: " + first
	}
	return v, err
}

func (n notifications) section(in *project.Project, list []*Alert, count int) *mail.Section {
	head := fmt.Sprintf("%d new alerts in %s:", count, in.FullPath)
	if count == 1 {
		head = "New alert in " + in.FullPath + ":"
	}
	var out strings.Builder
	for _, a := range list {
		fmt.Fprintf(&out, "%s (%s)\n%s\n", a.Title, a.Severity, n.s.Site.URL+address(in, a.IID))
		if a.Description != "" {
			out.WriteString(clip(line(a.Description), 300) + "\n")
		}
		out.WriteString("\n")
	}
	if more := count - len(list); more > 0 {
		fmt.Fprintf(&out, "and %d more\n", more)
	}
	text := strings.TrimSpace(out.String())
	return &mail.Section{Head: head, Text: text, HTML: mail.Plain(text)}
}

// Subscribe implements notify.Source. There are no subscriptions to alerts.
func (notifications) Subscribe(context.Context, int64, int64, bool) error { return nil }

// CanUnsubscribe implements notify.Source.
func (notifications) CanUnsubscribe() bool { return false }
