package plan

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/mail"
	"svc/internal/markup"
	"svc/internal/notify"
	"svc/internal/project"
	"svc/internal/user"
)

// notify has those told of what happened to an issue whom it concerns.
func (s *Service) notify(ctx context.Context, tx *db.Tx, by actor.Actor, i *Issue, e notify.EventType, d notify.Details) error {
	return s.Notify.Notify(ctx, tx, notify.Event{
		Type: e, TargetKind: string(IssueKind), TargetID: i.ID, ProjectID: i.ProjectID, AuthorID: by.ID, Details: d,
	})
}

// notifyMentioned notifies those whom a new description of an issue mentions.
func (s *Service) notifyMentioned(ctx context.Context, tx *db.Tx, by actor.Actor, i *Issue, names []string) error {
	if len(names) == 0 {
		return nil
	}
	return s.notify(ctx, tx, by, i, notify.Mention, notify.Details{Mentioned: names})
}

// NewMentions gives the names that a text mentions and that stood not in what
// was there before.
func NewMentions(ctx context.Context, was, is string) ([]string, error) {
	if was == is {
		return nil, nil
	}
	before, err := markup.Mentions(ctx, was)
	if err != nil {
		return nil, err
	}
	after, err := markup.Mentions(ctx, is)
	return slices.DeleteFunc(after, func(name string) bool { return slices.Contains(before, name) }), err
}

// NotifyDue tells of the issues that are due today or tomorrow: on each of the two
// days once.
func (s *Service) NotifyDue(ctx context.Context) error {
	today := s.today()
	tomorrow := s.Now().UTC().AddDate(0, 0, 1).Format(time.DateOnly)
	for _, day := range []string{today, tomorrow} {
		for after := int64(0); ; {
			list, err := findDue(ctx, s.DB, day, after)
			if err != nil {
				return fmt.Errorf("issues that are due: %w", err)
			}
			if len(list) == 0 {
				break
			}
			after = list[len(list)-1].ID
			err = s.DB.Tx(ctx, func(tx *db.Tx) error {
				for _, i := range list {
					err := s.Notify.Notify(ctx, tx, notify.Event{
						Type: notify.IssueDue, TargetKind: string(IssueKind), TargetID: i.ID, ProjectID: i.ProjectID,
						Once: fmt.Sprintf("issue_due/%d/%s/%s", i.ID, day, today), Details: notify.Details{To: day},
					})
					if err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return fmt.Errorf("issues that are due: %w", err)
			}
		}
	}
	return nil
}

// notifications is the notify.Source of issues.
type notifications struct{ s *Service }

// Recipients implements notify.Source.
func (l notifications) Recipients(ctx context.Context, a *notify.Event) (notify.Recipients, error) {
	i, err := findIssueByID(ctx, l.s.DB, a.TargetID)
	if err != nil {
		return notify.Recipients{}, notFound(err, "Issue")
	}
	if err := l.s.fillIssues(ctx, i); err != nil {
		return notify.Recipients{}, err
	}
	return l.s.Recipients(ctx, a, NotifyTarget{Thing: i.thing(), AuthorID: i.AuthorID, Description: i.Description, Labels: i.Labels, Assignees: i.Assignees})
}

// Events is a thing of which people are told.
type NotifyTarget struct {
	Thing                Thing
	AuthorID             int64
	Description          string
	Labels               []*Label
	Assignees, Reviewers []*user.User
}

// Recipients gives whom an act on an issue or merge request concerns.
func (s *Service) Recipients(ctx context.Context, a *notify.Event, t NotifyTarget) (notify.Recipients, error) {
	who, err := s.Subscriptions(ctx, t.Thing)
	if err != nil {
		return who, err
	}
	who.Participants = append(who.Participants, t.AuthorID)
	for _, u := range t.Assignees {
		who.Assignees = append(who.Assignees, u.ID)
	}
	for _, u := range t.Reviewers {
		who.Reviewers = append(who.Reviewers, u.ID)
	}
	var labels []int64
	switch a.Type {
	case notify.NewIssue, notify.NewMergeRequest:
		who.Text, labels = t.Description, LabelIDs(t.Labels)
	case notify.ReassignIssue, notify.ReassignMergeRequest, notify.ChangeReviewer:
		who.Affected = append(slices.Clone(a.Before), a.After...)
	case notify.Mention:
		return notify.Recipients{Mentions: a.Mentioned, Unsubscribed: who.Unsubscribed, SkipWatchers: true}, nil
	case notify.Relabel:
		labels, who = a.After, notify.Recipients{Unsubscribed: who.Unsubscribed, SkipWatchers: true}
	case notify.NewNote:
		who.Text, err = s.NoteText(ctx, a)
	}
	if err != nil {
		return who, err
	}
	asked, err := s.LabelSubscribers(ctx, labels)
	who.Subscribers = append(who.Subscribers, asked...)
	return who, err
}

// NoteText is what the note of an act says; empty when it is gone.
func (s *Service) NoteText(ctx context.Context, a *notify.Event) (string, error) {
	notes, err := findNotes(ctx, s.DB, []int64{a.NoteID})
	if err != nil || len(notes) == 0 {
		return "", err
	}
	return notes[0].Body, nil
}

// Subscriptions gives who takes part in a thing, who asked to be told of it, and who
// does not want to be.
func (s *Service) Subscriptions(ctx context.Context, of Thing) (notify.Recipients, error) {
	rows, err := findSubscriptions(ctx, s.DB, of)
	if err != nil {
		return notify.Recipients{}, fmt.Errorf("subscriptions of %s %d: %w", of.Kind, of.ID, err)
	}
	var who notify.Recipients
	for _, r := range rows {
		switch {
		case !r.subscribed:
			who.Unsubscribed = append(who.Unsubscribed, r.userID)
		case r.asked:
			who.Subscribers = append(who.Subscribers, r.userID)
		default:
			who.Participants = append(who.Participants, r.userID)
		}
	}
	return who, nil
}

// LabelSubscribers gives who asked to be told of things with these labels.
func (s *Service) LabelSubscribers(ctx context.Context, labels []int64) ([]int64, error) {
	ids, err := findLabelSubscribers(ctx, s.DB, labels)
	if err != nil {
		return nil, fmt.Errorf("followers of labels: %w", err)
	}
	return ids, nil
}

// Subscribe notes that somebody takes part in a thing, unless he left it, or that
// he leaves it. Whether he may see it was asked.
func (s *Service) SetSubscribed(ctx context.Context, of Thing, userID int64, want bool) error {
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		if want {
			return joinSubscription(ctx, tx, of, userID, s.Now())
		}
		return leaveSubscription(ctx, tx, of, userID, s.Now())
	})
}

// Subscribe implements notify.Source.
func (l notifications) Subscribe(ctx context.Context, userID, thingID int64, want bool) error {
	return l.s.SetSubscribed(ctx, Thing{IssueKind, thingID}, userID, want)
}

// CanUnsubscribe implements notify.Source.
func (notifications) CanUnsubscribe() bool { return true }

// View implements notify.Source.
func (l notifications) View(ctx context.Context, by actor.Actor, acts []*notify.Event) (*notify.View, error) {
	found, err := findIssueByID(ctx, l.s.DB, acts[0].TargetID)
	if err != nil {
		return nil, notFound(err, "Issue")
	}
	in, i, err := l.s.issue(ctx, by, project.RefTo(found.ProjectID), found.IID)
	if err != nil {
		return nil, err
	}
	number := strconv.FormatInt(i.IID, 10)
	v := &notify.View{
		Project: in, Subject: i.Title + " (#" + number + ")", Noun: "issue", Path: "/" + in.FullPath + "/-/issues/" + number,
		Headers: [][2]string{
			{"Issue-ID", strconv.FormatInt(i.ID, 10)}, {"Issue-IID", number}, {"Issue-State", string(i.State)},
			{"ConfidentialIssue", strconv.FormatBool(i.Confidential)},
		},
	}
	people, err := l.s.Named(ctx, acts)
	if err != nil {
		return nil, err
	}
	return v, v.Add(acts, notify.NewIssue, func(a *notify.Event) (*mail.Section, error) { return l.section(ctx, by, in, i, a, people) })
}

// section tells of one act; nil when there is nothing that the reader may know.
func (l notifications) section(ctx context.Context, by actor.Actor, in *project.Project, i *Issue, a *notify.Event, people Names) (*mail.Section, error) {
	who := people.Name(a.AuthorID)
	switch a.Type {
	case notify.NewIssue:
		return l.s.Section(ctx, by, in, who+" opened an issue.", i.Description)
	case notify.Mention:
		return l.s.Section(ctx, by, in, who+" mentioned you in the issue.", i.Description)
	case notify.CloseIssue:
		return &mail.Section{Head: who + " closed the issue."}, nil
	case notify.ReopenIssue:
		return &mail.Section{Head: who + " reopened the issue."}, nil
	case notify.ReassignIssue:
		return &mail.Section{Head: who + " changed the assignees.", Text: people.Change(a), HTML: mail.Plain(people.Change(a))}, nil
	case notify.Relabel:
		return Relabelled(i.Labels, a, who), nil
	case notify.IssueDue:
		return &mail.Section{Head: dueHeading(a.To, a.CreatedAt)}, nil
	case notify.MovedIssue:
		return l.moved(ctx, by, i, who)
	case notify.NewNote:
		return l.s.NoteSection(ctx, by, in, a, who)
	}
	return nil, nil
}

func dueHeading(day string, told time.Time) string {
	if day == told.UTC().Format(time.DateOnly) {
		return "The issue is due today."
	}
	return "The issue is due tomorrow, " + day + "."
}

// Relabelled names the labels that a thing got, of those that it has; nil when
// it has none of them any more.
func Relabelled(has []*Label, a *notify.Event, who string) *mail.Section {
	var names []string
	for _, label := range has {
		if slices.Contains(a.After, label.ID) {
			names = append(names, label.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return &mail.Section{Head: who + " added a label that you follow: " + strings.Join(names, ", ") + "."}
}

// moved tells where an issue went to those who see it there.
func (l notifications) moved(ctx context.Context, by actor.Actor, i *Issue, who string) (*mail.Section, error) {
	gone := &mail.Section{Head: who + " moved the issue to another project."}
	if i.MovedToID == nil {
		return gone, nil
	}
	to, err := findIssueByID(ctx, l.s.DB, *i.MovedToID)
	if errs.Is(notFound(err, "Issue"), errs.KindNotFound) {
		return gone, nil // it was deleted there
	}
	if err != nil {
		return nil, err
	}
	_, seen, err := l.s.issue(ctx, by, project.RefTo(to.ProjectID), to.IID)
	if hidden(err) {
		return gone, nil
	}
	if err != nil {
		return nil, err
	}
	gone.Head = fmt.Sprintf("%s moved the issue to %s#%d.", who, seen.ProjectPath, seen.IID)
	return gone, nil
}

// Section is a part of a letter with a text of somebody, as its reader may see
// what it refers to.
func (s *Service) Section(ctx context.Context, by actor.Actor, in *project.Project, head, text string) (*mail.Section, error) {
	if text == "" {
		return &mail.Section{Head: head}, nil
	}
	ref := project.RefTo(in.ID)
	html, err := s.Render(ctx, by, &ref, text)
	if err != nil {
		return nil, err
	}
	return &mail.Section{Head: head, Text: text, HTML: s.Notify.EmailHTML(html)}, nil
}

// NoteSection is a part of a letter about a note on a thing that the reader
// sees; nil when the note is gone or not for him.
func (s *Service) NoteSection(ctx context.Context, by actor.Actor, in *project.Project, a *notify.Event, who string) (*mail.Section, error) {
	notes, err := findNotes(ctx, s.DB, []int64{a.NoteID})
	if err != nil || len(notes) == 0 {
		return nil, err
	}
	n := notes[0]
	if n.On != (Thing{Kind(a.TargetKind), a.TargetID}) || n.Internal && !in.MayRead(by, project.ConfidentialPart) {
		return nil, nil
	}
	head := who + " commented:"
	switch {
	case n.Internal:
		head = who + " wrote an internal note:"
	case n.Type != "":
		head = who + " wrote in a thread:"
	}
	return s.Section(ctx, by, in, head, n.Body)
}

// Names are the users whom acts name.
type Names map[int64]*user.User

// Named reads who is named by acts.
func (s *Service) Named(ctx context.Context, acts []*notify.Event) (Names, error) {
	var ids []int64
	for _, a := range acts {
		ids = append(append(append(ids, a.AuthorID), a.Before...), a.After...)
	}
	users, err := s.Users.FindAll(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("people of acts: %w", err)
	}
	return users, nil
}

// Name is that of a user, or of nobody.
func (p Names) Name(id int64) string {
	if u := p[id]; u != nil {
		return u.Name
	}
	return "Somebody"
}

// Change says who came for whom.
func (p Names) Change(a *notify.Event) string {
	list := func(ids []int64) string {
		var names []string
		for _, id := range ids {
			names = append(names, p.Name(id))
		}
		if len(names) == 0 {
			return "nobody"
		}
		return strings.Join(names, ", ")
	}
	return "From " + list(a.Before) + " to " + list(a.After)
}
