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

// notificationKind is the kind of thing that letters are about: all alerts of a
// project together, so that a storm of them becomes one letter.
const notificationKind = "Alerts"

// maxListed is how many alerts one letter names.
const maxListed = 20

// notify has the keepers of a project told of new alerts.
func (s *Service) notify(ctx context.Context, tx *db.Tx, projectID int64, ids []int64) error {
	return s.Notify.Notify(ctx, tx, notify.Event{
		Type: notify.NewAlert, TargetKind: notificationKind, TargetID: projectID, ProjectID: projectID,
		Details: notify.Details{After: ids[:min(maxListed, len(ids))], Count: len(ids)},
	})
}

// notifications is the notify.Source of alerts.
type notifications struct{ s *Service }

// Recipients implements notify.Source: Maintainers and above are told, unless their
// settings say that they do not want to be.
func (l notifications) Recipients(ctx context.Context, a *notify.Event) (notify.Recipients, error) {
	ids, err := l.s.Projects.MembersFrom(ctx, project.Place{Ref: project.RefTo(a.ProjectID)}, project.Maintainer)
	return notify.Recipients{BySettings: ids, SkipWatchers: true}, err
}

// View implements notify.Source.
func (l notifications) View(ctx context.Context, by actor.Actor, acts []*notify.Event) (*notify.View, error) {
	in, err := l.s.watcher(ctx, by, project.RefTo(acts[0].ProjectID))
	if err != nil {
		return nil, err
	}
	v := &notify.View{Project: in, Subject: "New alerts", Noun: "alerts", Path: "/" + in.FullPath + "/-/alert_management"}
	first := ""
	err = v.Add(acts, "", func(a *notify.Event) (*mail.Section, error) {
		list, err := findAlerts(ctx, l.s.DB, a.After)
		if err != nil || len(list) == 0 {
			return nil, err
		}
		first = list[0].Title
		return l.section(in, list, a.Count), nil
	})
	if len(v.Events) == 1 && v.Events[0].Count == 1 {
		v.Subject = "Alert: " + first
	}
	return v, err
}

func (l notifications) section(in *project.Project, list []*Alert, count int) *mail.Section {
	head := fmt.Sprintf("%d new alerts in %s:", count, in.FullPath)
	if count == 1 {
		head = "There is a new alert in " + in.FullPath + ":"
	}
	var out strings.Builder
	for _, a := range list {
		fmt.Fprintf(&out, "%s (%s)\n%s\n", a.Title, a.Severity, l.s.Site.URL+address(in, a.IID))
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

// Subscribe implements notify.Source: nobody follows all alerts.
func (notifications) Subscribe(context.Context, int64, int64, bool) error { return nil }

// CanUnsubscribe implements notify.Source.
func (notifications) CanUnsubscribe() bool { return false }
